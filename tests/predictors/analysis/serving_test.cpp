#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "ftax/error.hpp"
#include "ftax/framework.hpp"
#include "ftax/import.hpp"
#include "ftax/serve.hpp"
#include "graphs/loading.hpp"
#include "predictors/analysis/step_table.hpp"
#include "tests/approx.hpp"
#include "tests/failure.hpp"

using namespace ftax;
using namespace ftax::test;

namespace {

/// An engine of round numbers: 5 ms a step, 10 us a token of a prompt, 20 us a sequence, 20 ns a token in the cache.
StepCost engine(const StepLoad& load) {
    const double device_s = 5e-3 + 1e-5 * static_cast<double>(load.prompt_tokens) +
                            static_cast<double>(load.sequences) * (2e-5 + 2e-8 * load.context);
    return {1e-3, device_s, device_s, Bound::memory, 0, 1e-3};
}

StepCost constant(const StepLoad&) {
    return {0, 0.01, 0.01, Bound::memory};
}

Serving serve(const std::vector<ServingRequest>& requests, const SchedulerOptions& options, const StepFunction& step) {
    return ftax::serve(requests, {.options = options, .step = step});
}

double mean_wait(double load) {
    const double service_s = 0.01;
    const auto requests = draw_requests(200'000, load / service_s, 1, 1, 0, 7);
    const Serving serving = serve_batches(requests, {.max_batch = 1}, [&](std::int64_t) {
        return StepCost{0, service_s, service_s};
    });
    return serving.latency_s.mean - service_s;
}

}  // namespace

TEST_CASE("a single request takes its prompt's step and one step for each further token") {
    const std::vector<ServingRequest> one{{1.0, 100, 11}};
    const Serving serving = serve(one, {.schedules_ahead = false}, engine);
    CHECK(serving.ttft_s.mean == approx(6e-3));
    // Tokens 2 to 11 are computed with 100 to 109 tokens in the cache.
    CHECK(serving.tpot_s.mean == approx(5e-3 + 2e-5 + 2e-8 * 104.5));
    CHECK(serving.latency_s.mean == approx(serving.ttft_s.mean + 10 * serving.tpot_s.mean));
    CHECK(serving.steps == 11);
    // The host of the first step comes before it; that of the others runs beside the device.
    CHECK(serve(one, {}, engine).latency_s.mean == approx(serving.latency_s.mean + 1e-3));
}

TEST_CASE("requests and tokens are conserved, and Little's law holds") {
    for (const double rate : {1.0, 20.0, 200.0}) {
        CAPTURE(rate);
        const auto requests = draw_requests(2000, rate, 300, 100, 0.7, 3);
        for (const bool mixes : {false, true}) {
            const Serving serving =
                serve(requests, {.max_sequences = 64, .cache_tokens = 30'000, .mixes_phases = mixes}, engine);
            REQUIRE(serving.requests.size() == requests.size());
            std::int64_t tokens = 0;
            for (std::size_t i = 0; i < requests.size(); ++i) {
                const RequestTimes& times = serving.requests[i];
                CHECK(times.arrival_s == requests[i].arrival_s);
                CHECK(times.first_token_s > times.arrival_s);
                CHECK(times.last_token_s >= times.first_token_s);
                tokens += requests[i].output;
            }
            CHECK(serving.tokens_per_s * serving.duration_s == approx(static_cast<double>(tokens)));
            CHECK(serving.mean_outstanding == approx(serving.requests_per_s * serving.latency_s.mean));
            CHECK(serving.utilisation <= 1 + 1e-9);
        }
    }
}

TEST_CASE("percentiles of more times than are kept one by one are within 4e-6 of theirs, and exact below") {
    for (const std::int64_t output : {1'000'000, 2'500'000}) {
        CAPTURE(output);
        std::vector<double> gaps;
        std::mt19937_64 random(1);
        // Twice and four times as long after the first million: what was kept first is not like the rest.
        const auto step = [&](const StepLoad&) {
            const double drawn = static_cast<double>(random() >> 11) * 0x1p-53;
            const double seconds = 0x1p-9 * (1 + drawn) * (gaps.size() > 1'000'000 ? gaps.size() % 2 == 0 ? 2 : 4 : 1);
            gaps.push_back(seconds);
            return StepCost{0, seconds, seconds, Bound::memory};
        };
        const Serving serving = serve({{0, 1, output}}, {.schedules_ahead = false}, step);
        REQUIRE(static_cast<std::int64_t>(gaps.size()) == output);
        gaps.erase(gaps.begin());  // the first token
        std::ranges::sort(gaps);
        const auto at = [&](double share) {
            return gaps[static_cast<std::size_t>(std::ceil(share * static_cast<double>(gaps.size()))) - 1];
        };
        const double tolerance = output > 1'000'000 ? 4e-6 : 1e-9;  // of differences of times
        const double mean = std::accumulate(gaps.begin(), gaps.end(), 0.0) / static_cast<double>(gaps.size());
        CHECK(serving.itl_s.mean == approx(mean).epsilon(1e-8));
        CHECK(serving.itl_s.p50 == approx(at(0.5)).epsilon(tolerance));
        CHECK(serving.itl_s.p90 == approx(at(0.9)).epsilon(tolerance));
        CHECK(serving.itl_s.p99 == approx(at(0.99)).epsilon(tolerance));
    }
}

TEST_CASE("the moments of a long run are evenly spread over all of it") {
    for (const std::size_t count : {5, 300, 3000}) {
        const auto requests = draw_requests(count, 20, 100, 40, 0, 3);
        const Serving serving = serve(requests, {}, engine);
        const std::vector<ServingMoment>& moments = serving.timeline;
        REQUIRE(moments.size() <= 512);
        REQUIRE(static_cast<std::int64_t>(moments.size()) >= std::min<std::int64_t>(serving.steps, 256));
        double widest_s = moments.front().time_s;
        for (std::size_t i = 1; i < moments.size(); ++i)
            widest_s = std::max(widest_s, moments[i].time_s - moments[i - 1].time_s);
        if (count > 5) CHECK(widest_s < moments.back().time_s / 40);
    }
}

TEST_CASE("the moments average what runs over all of the time, and a server that idles has fewer than one") {
    for (const std::int64_t servers : {1, 3}) {
        CAPTURE(servers);
        const auto requests = draw_requests(500, 1.2 * static_cast<double>(servers), 300, 60, 0, 3);
        const Serving serving = ftax::serve(requests, {.options = {}, .step = engine, .servers = servers});
        const double busy_s = serving.utilisation * serving.duration_s * static_cast<double>(servers);
        double request_s = 0, least = 1e9, before_s = requests.front().arrival_s;
        for (const ServingMoment& moment : serving.timeline) {
            request_s += moment.running * (moment.time_s - before_s);
            least = std::min(least, moment.running);
            before_s = moment.time_s;
        }
        CHECK(serving.utilisation < 0.7);
        CHECK(request_s == approx(serving.mean_sequences * busy_s).epsilon(0.01));
        CHECK(least < 0.5 * static_cast<double>(servers));
    }
    // A batch of one request each second, for 0.63 s.
    const auto steady = [] {
        std::vector<ServingRequest> each_second;
        for (int i = 0; i < 1000; ++i) each_second.push_back({static_cast<double>(i)});
        return each_second;
    }();
    const Serving batches = serve_batches(steady, {}, [](std::int64_t) { return StepCost{0, 0.63, 0.63}; });
    CHECK(batches.utilisation == approx(0.63).epsilon(1e-3));
    for (const ServingMoment& moment : batches.timeline) CHECK(moment.running == approx(0.63).epsilon(0.25));
}

TEST_CASE("the pages of the cache are never more than there are, and evicted sequences end") {
    const auto requests = draw_requests(500, 0, 200, 200, 0.5, 5);
    const Serving evicting = serve(requests, {.cache_tokens = 4000}, engine);
    CHECK(evicting.evictions > 0);
    const Serving reserving = serve(requests, {.cache_tokens = 4000, .evicts = false}, engine);
    CHECK(reserving.evictions == 0);
    for (const Serving* serving : {&evicting, &reserving}) {
        CHECK(serving->peak_cache_share <= 1);
        CHECK(serving->bound == ServingBound::cache);
        CHECK(serving->requests.size() == 500);
    }
    // What is reserved and not yet used serves no other sequence.
    CHECK(reserving.mean_sequences < evicting.mean_sequences);
}

TEST_CASE("the wait of a queue with constant service times is that of M/D/1") {
    for (const double load : {0.3, 0.6, 0.8}) {
        CAPTURE(load);
        CHECK(std::abs(mean_wait(load) / (load * 0.01 / (2 * (1 - load))) - 1) < 0.05);
    }
}

TEST_CASE("times rise with the rate, and the same seed gives the same times") {
    double last_s = 0;
    for (const double rate : {1.0, 5.0, 20.0, 50.0, 100.0}) {
        const auto requests = draw_requests(1000, rate, 500, 100, 0, 11);
        const Serving serving = serve(requests, {.max_sequences = 32}, engine);
        CHECK(serving.latency_s.mean > last_s);
        last_s = serving.latency_s.mean;
        CHECK(serve(draw_requests(1000, rate, 500, 100, 0, 11), {.max_sequences = 32}, engine).latency_s.mean ==
              last_s);
    }
    CHECK(draw_requests(10, 1, 100, 100, 0.5, 1)[9].arrival_s != draw_requests(10, 1, 100, 100, 0.5, 2)[9].arrival_s);
}

TEST_CASE("drawn requests have the mean lengths and the rate that was asked for") {
    const auto requests = draw_requests(50'000, 4, 800, 200, 0.8, 1);
    double prompts = 0, outputs = 0, squares = 0;
    for (const ServingRequest& request : requests) {
        prompts += static_cast<double>(request.prompt) / 50'000;
        outputs += static_cast<double>(request.output) / 50'000;
        squares += static_cast<double>(request.prompt * request.prompt) / 50'000;
    }
    CHECK(std::abs(prompts / 800 - 1) < 0.02);
    CHECK(std::abs(outputs / 200 - 1) < 0.02);
    CHECK(std::abs(std::sqrt(squares - prompts * prompts) / 800 - 0.8) < 0.05);
    CHECK(std::abs(requests.back().arrival_s / 12'500 - 1) < 0.02);
}

TEST_CASE("clients with a fixed concurrency keep so many requests outstanding") {
    const auto requests = draw_requests(400, 0, 100, 50, 0, 1);
    const Serving serving = serve(requests, {.concurrency = 8}, engine);
    CHECK(serving.mean_outstanding <= 8 + 1e-9);
    CHECK(serving.mean_outstanding > 7.5);
    CHECK(serving.mean_sequences <= 8);
}

TEST_CASE("rates of clients are those of the steady state, whatever the longest request takes at the end") {
    std::vector<ServingRequest> requests(400, {0, 1, 50});
    requests.push_back({0, 1, 2000});
    // Eight tokens in each step of 10 ms until the last request is sent, which then runs alone.
    const Serving serving = serve(requests, {.concurrency = 8, .chunks_prompts = false}, constant);
    CHECK(serving.tokens_per_s == approx(800).epsilon(0.02));
    CHECK(serving.latency_s.mean == approx((400 * 0.5 + 20) / 401).epsilon(0.02));
    const std::vector<ServingRequest> few(requests.begin(), requests.begin() + 8);
    const Serving whole = serve(few, {.concurrency = 8}, constant);
    CHECK(whole.tokens_per_s == approx(800).epsilon(0.02));
    CHECK(whole.duration_s == approx(0.5));
}

TEST_CASE("prompts are read in parts beside decoding, or hold it up") {
    std::vector<ServingRequest> requests{{0, 10, 400}, {1, 8000, 2}};
    const SchedulerOptions parts{.max_tokens = 1000};
    const Serving mixed = serve(requests, parts, engine);
    SchedulerOptions apart = parts;
    apart.mixes_phases = apart.chunks_prompts = false;
    const Serving whole = serve(requests, apart, engine);
    CHECK(mixed.requests[0].tpot_s() > 5e-3);
    // The longest pause of the first request: a step of 1,000 tokens, or the whole prompt and its own step.
    std::vector<ServingRequest> alone{requests[0]};
    CHECK(mixed.itl_s.p99 <= approx(0.0151));
    CHECK(whole.requests[0].latency_s() ==
          approx(serve(alone, apart, engine).latency_s.mean + 5e-3 + 0.08).epsilon(1e-3));
}

TEST_CASE("a shared prefix is neither computed nor stored again") {
    const auto requests = draw_requests(200, 50, 1000, 20, 0, 1);
    const Serving cold = serve(requests, {.cache_tokens = 20'000}, engine);
    const Serving warm = serve(requests, {.cache_tokens = 20'000, .shared_prefix = 0.75}, engine);
    CHECK(warm.ttft_s.mean < cold.ttft_s.mean);
    CHECK(warm.peak_cache_share < cold.peak_cache_share);
}

TEST_CASE("a request may have a prefix of its own, no shorter than the share that all have") {
    auto requests = draw_requests(200, 50, 1000, 20, 0, 1);
    const Serving shared = serve(requests, {.cache_tokens = 20'000, .shared_prefix = 0.75}, engine);
    for (ServingRequest& request : requests) request.prefix = 750;
    CHECK(serve(requests, {.cache_tokens = 20'000}, engine).ttft_s.mean == shared.ttft_s.mean);
    CHECK(serve(requests, {.cache_tokens = 20'000, .shared_prefix = 0.5}, engine).ttft_s.mean == shared.ttft_s.mean);
    requests[7].prefix = 0;
    const Serving one_cold = serve(requests, {.cache_tokens = 20'000}, engine);
    CHECK(one_cold.requests[7].ttft_s() > shared.requests[7].ttft_s());
    requests[7].prefix = 1001;
    CHECK_THROWS_WITH_AS(serve(requests, {.cache_tokens = 20'000}, engine), doctest::Contains("request 8: prefix"),
                         Error);
}

TEST_CASE("a batch waits for more requests as long as its delay allows") {
    const auto run = [](std::int64_t batch) {
        return StepCost{0, 0.01 + 1e-3 * static_cast<double>(batch), 0.01 + 1e-3 * static_cast<double>(batch)};
    };
    const std::vector<ServingRequest> two{{0, 1, 1}, {0.004, 1, 1}};
    const Serving eager = serve_batches(two, {.max_batch = 4}, run);
    CHECK(eager.requests[0].latency_s() == approx(0.011));
    CHECK(eager.requests[1].latency_s() == approx(0.018));
    const Serving patient = serve_batches(two, {.max_batch = 4, .max_delay_s = 0.005}, run);
    CHECK(patient.requests[0].latency_s() == approx(0.017));
    CHECK(patient.requests[1].latency_s() == approx(0.013));
    CHECK(eager.energy_j == 0);
    const Serving drawing = serve_batches(two, {.max_batch = 4}, [&](std::int64_t batch) {
        StepCost cost = run(batch);
        cost.energy_j = 3;
        return cost;
    });
    CHECK(drawing.energy_j == 3.0 * static_cast<double>(drawing.steps));
    for (const std::int64_t cards : {1, 4}) {  // each draws what a step takes of one
        const Serving pool = ftax::serve(two, {.options = {},
                                               .step =
                                                   [](const StepLoad&) {
                                                       return StepCost{0, 0.01, 0.01, Bound::memory, 3};
                                                   },
                                               .cards = cards});
        CHECK(pool.energy_j == approx(3.0 * static_cast<double>(pool.steps * cards)));
    }
    const Serving full = serve_batches(two, {.max_batch = 2, .max_delay_s = 0.005}, run);
    CHECK(full.requests[0].latency_s() == approx(0.016));
}

TEST_CASE("the largest rate that keeps a level is found to 1 %") {
    const double service_s = 0.01, allowed_s = 0.05;
    const auto at_rate = [&](double rate) {
        return serve_batches(draw_requests(20'000, rate, 1, 1, 0, 1), {.max_batch = 1}, [&](std::int64_t) {
            return StepCost{0, service_s, service_s};
        });
    };
    const ServiceLevel level{.latency_s = allowed_s};
    for (const double start : {1.0, 70.0, 1000.0}) {
        const double rate = find_rate(at_rate, level, start);
        CHECK(kept_share(at_rate(rate), level) >= 0.99);
        CHECK(kept_share(at_rate(1.02 * rate), level) < 0.99);
    }
    CHECK(find_rate(at_rate, {.latency_s = 0.005}, 10) == 0);
}

TEST_CASE("a level of all requests is kept where every one keeps it") {
    const auto at_rate = [](double rate) {
        return serve_batches(draw_requests(200, rate, 1, 1, 0, 1), {.max_batch = 1}, [](std::int64_t) {
            return StepCost{0, 0.01, 0.01};
        });
    };
    const ServiceLevel level{.latency_s = 0.05, .share = 1};
    CHECK(kept_share(at_rate(1), level) == 1);
    CHECK(find_rate(at_rate, level, 10) > 1);
}

TEST_CASE("a cache holds as many whole pages as a sequence needs, and one page less keeps it waiting") {
    // 33 tokens are three pages of 16, each sequence its own; engines that do not evict reserve the answer as well.
    const std::vector<ServingRequest> two{{0, 33, 1}, {0, 33, 1}};
    const auto steps = [&](std::int64_t pages, std::int64_t output, bool evicts) {
        std::vector<ServingRequest> requests = two;
        for (ServingRequest& request : requests) request.output = output;
        return serve(requests, {.cache_tokens = 16 * pages, .evicts = evicts}, engine).steps;
    };
    CHECK(steps(6, 1, true) == 1);
    CHECK(steps(5, 1, true) == 2);
    CHECK(steps(8, 20, false) == 20);  // 53 tokens are four pages
    CHECK(steps(7, 20, false) == 40);
    CHECK(steps(6, 15, false) == 15);  // 48 tokens are three
}

TEST_CASE("prompts beyond the tokens of a step are cut where an engine cuts, else they run whole and alone") {
    const std::vector<ServingRequest> requests{{0, 1500, 1}, {0, 500, 1}};
    const auto prompt_tokens = [&](bool chunks) {
        std::vector<std::int64_t> tokens;
        static_cast<void>(serve(requests, {.max_tokens = 1000, .chunks_prompts = chunks}, [&](const StepLoad& load) {
            tokens.push_back(load.prompt_tokens);
            return engine(load);
        }));
        return tokens;
    };
    CHECK(prompt_tokens(true) == std::vector<std::int64_t>{1000, 1000});
    CHECK(prompt_tokens(false) == std::vector<std::int64_t>{1500, 500});
}

TEST_CASE("bad requests are refused") {
    const auto message = [](const std::vector<ServingRequest>& requests, const SchedulerOptions& options = {}) {
        return failure_of([&] { return serve(requests, options, constant); }).message;
    };
    CHECK(message({}).find("no requests") != std::string::npos);
    CHECK(message({{1, 1, 1}, {0, 1, 1}}).find("request 2") != std::string::npos);
    CHECK(message({{NAN, 1, 1}}).find("arrival_s") != std::string::npos);
    CHECK(message({{0, 0, 1}}).find("tokens from 1") != std::string::npos);
    CHECK(message({{0, 900, 200}}, {.cache_tokens = 1000}).find("room for") != std::string::npos);
}

TEST_CASE("a sequence that was evicted computes again what its pages no longer hold") {
    // Ten pages: both sequences start with 4 and meet at 5. The first then takes the 3 last pages of the second.
    const auto prompt_tokens = [](bool caches_prefixes) {
        std::int64_t computed = 0;
        const std::vector<ServingRequest> requests{{0, 64, 64}, {0, 64, 64}};
        const Serving run =
            serve(requests, {.cache_tokens = 160, .caches_prefixes = caches_prefixes}, [&](const StepLoad& load) {
                computed += load.prompt_tokens;
                return StepCost{.device_s = 1, .latency_s = 1};
            });
        CHECK(run.evictions == 1);
        return computed;
    };
    const std::int64_t all = 64 + 64 + 81;  // evicted as it asks for a sixth page
    CHECK(prompt_tokens(false) == all);
    CHECK(prompt_tokens(true) == all - 2 * 16);
}

TEST_CASE("a prompt starts only if it, its answer and a share of the other answers have room") {
    // Each sequence ends with eight pages of 16 tokens; at first it takes four.
    const auto run = [](std::int64_t pages, double share, std::int64_t output = 64) {
        const std::vector<ServingRequest> requests{{0, 64, output}, {0, 64, output}};
        return serve(requests, {.cache_tokens = 16 * pages, .mixes_phases = false, .answer_share = share}, constant);
    };
    CHECK(run(10, 0).evictions == 1);
    CHECK(run(15, 1).evictions == 0);
    CHECK(run(15, 1).mean_sequences <= 1);
    CHECK(run(15, 0.5).mean_sequences > 1.5);  // from the first's second step on, half of its other 63 tokens count
    CHECK(run(16, 1).mean_sequences > 1.5);
    // The share falls: 300 steps later the first's other 700 tokens need 399 of the 492 that are left, not 700.
    CHECK(run(120, 1, 1000).mean_sequences > 1);
    // Of an answer, 4,096 tokens count: the two need 64 + 4,096 + 819 of the 5,008 that are free, not 6,064.
    CHECK(run(318, 0.2, 5000).mean_sequences > 1);
}

TEST_CASE("the table of steps is within 1 % of exact predictions") {
    const Graph graph = load_graph("zoo:llama-3-8b");
    Generator generator(graph, device_profile("h100-sxm5-80gb"), framework_profile("vllm"),
                        {.precision = Precision::bf16, .libraries = {.engine = 11}});
    StepTable table(generator, {});
    std::mt19937_64 random(1);
    const auto draw = [&](double most) {
        return std::exp(std::log(most) * static_cast<double>(random() % 1000) / 1000);
    };
    for (int i = 0; i < 1000; ++i) {
        StepLoad load{.sequences = std::llround(draw(256)), .context = draw(8000)};
        if (i % 2 == 0)
            load = {std::llround(draw(8000)), 16 * draw(500), i % 4 == 0 ? load.sequences : 0, load.context};
        const StepCost expected = StepTable(generator, {})(load), found = table(load);  // a new one answers exactly
        CAPTURE(load.prompt_tokens);
        CAPTURE(load.prompt_keys);
        CAPTURE(load.sequences);
        CAPTURE(load.context);
        CHECK(std::abs(found.latency_s / expected.latency_s - 1) < 0.01);
        CHECK(std::abs(found.energy_j / expected.energy_j - 1) < 0.1);
    }
}

TEST_CASE("a sampler on the device takes its time for each token of a step") {
    const Graph graph = load_graph("zoo:llama-3-8b");
    Generator generator(graph, device_profile("h100-sxm5-80gb"), framework_profile("vllm"),
                        {.precision = Precision::bf16, .libraries = {.engine = 11}});
    constexpr double sampling_s = 20e-6;
    StepTable greedy(generator, {}), sampling(generator, {.sampling_s = sampling_s});
    const auto more_s = [&](const StepLoad& load) { return sampling(load).latency_s - greedy(load).latency_s; };
    CHECK(more_s({.sequences = 100, .context = 500}) == approx(100 * sampling_s).epsilon(1e-6));
    CHECK(more_s({1000, 500, 100, 500}) == approx(101 * sampling_s).epsilon(1e-6));
    const StepLoad load{.sequences = 100, .context = 500};
    CHECK(sampling(load).energy_j - greedy(load).energy_j == approx(100 * sampling_s * 700).epsilon(1e-3));  // at 700 W
}

TEST_CASE("the host of a mixed step counts its sequences once, however short the prompts and many the sequences") {
    const Graph graph = load_graph("llama-3-8b");
    Generator generator(graph, device_profile("h100-sxm5-80gb"), framework_profile("vllm"),
                        {.precision = Precision::bf16, .libraries = {.engine = 11}});
    StepTable table(generator, {});
    const auto host_s = [&](std::int64_t prompt_tokens, std::int64_t sequences) {
        return table({prompt_tokens, static_cast<double>(prompt_tokens) / 2, sequences, 500}).host_s;
    };
    const double sequence_s = host_s(2000, 2) - host_s(2000, 1);
    CHECK(sequence_s > 1e-6);
    // Decoding is captured as a graph up to 256 sequences.
    for (const std::int64_t sequences : {8, 200, 400}) {
        CAPTURE(sequences);
        CHECK(host_s(30, sequences) - host_s(30, 1) ==
              approx(static_cast<double>(sequences - 1) * sequence_s).epsilon(0.05));
    }
}

TEST_CASE("steps take time where one sequence alone is a CUDA graph, as under llama.cpp") {
    const Graph graph = load_graph("llama-3-8b");
    Generator generator(graph, device_profile("rtx-4090"), framework_profile("llama.cpp"),
                        {.precision = Precision::q4_0, .libraries = {.engine = 202500}});
    StepTable table(generator, {.schedules_ahead = false});
    const double pass_s = generator.predictor().predict(generator.pass({}, 1, 256, 0)).host_s;
    for (const double keys : {2.0, 8.0, 64.0}) {  // many short prompts to one of 128 tokens
        const StepCost cost = table({256, keys, 0, 0});
        CAPTURE(keys);
        CHECK(cost.host_s == approx(pass_s).epsilon(0.05));
        CHECK(cost.latency_s > cost.device_s);
    }
}

TEST_CASE("the keys that a mixed step reads fill the pause in which the device waits for the host") {
    const Graph graph = load_graph("llama-3-8b");
    FrameworkProfile slow = framework_profile("vllm-eager");
    slow.parameters.push_back({"host.scale", 20, 0, ""});  // a host that its device waits for
    std::sort(slow.parameters.begin(), slow.parameters.end(),
              [](const Parameter& a, const Parameter& b) { return a.name < b.name; });
    Generator generator(graph, device_profile("h100-sxm5-80gb"), slow, {.precision = Precision::bf16});
    StepTable ahead(generator, {}), waiting(generator, {.schedules_ahead = false});
    const StepLoad mixed{.prompt_tokens = 16, .prompt_keys = 8, .sequences = 64, .context = 4000};
    const StepLoad prompts{.prompt_tokens = 80, .prompt_keys = 2};
    const StepCost base = ahead(prompts), own = ahead(mixed), other = waiting(mixed);
    REQUIRE(base.host_s > base.device_s);
    CHECK(own.device_s > base.device_s);
    CHECK(base.ahead_s < 0.2 * base.host_s);  // the host launches the rest while the device runs
    CHECK(ahead({.sequences = 1, .context = 100}).ahead_s == ahead({.sequences = 1, .context = 100}).host_s);
    CHECK(own.latency_s < other.latency_s);
    CHECK(other.latency_s - own.latency_s == approx(other.device_s - base.device_s).epsilon(0.05));
}

TEST_CASE("drafts that are all wrong gain nothing, all right ones a token each, others a geometric series of them") {
    const std::vector<ServingRequest> one{{0, 100, 401}};
    const auto steps = [&](std::int64_t drafts, double acceptance) {
        const Serving run = serve(one, {.draft_tokens = drafts, .acceptance = acceptance}, constant);
        CHECK(run.tokens_per_s * run.duration_s == approx(401));
        return run.steps;
    };
    CHECK(steps(3, 0) == steps(0, 0));
    CHECK(steps(3, 1) == 1 + 400 / 4);
    const auto requests = draw_requests(100, 0, 64, 401, 0, 1);
    const double plain = serve(requests, {}, constant).duration_s;
    const double drafted = serve(requests, {.draft_tokens = 3, .acceptance = 0.7}, constant).duration_s;
    CHECK(std::abs(plain / drafted / (1 + 0.7 + 0.49 + 0.343) - 1) < 0.1);
    // The time between tokens is shared out among those of a step.
    CHECK(serve(one, {.draft_tokens = 3, .acceptance = 1}, constant).itl_s.p99 == approx(0.01 / 4));
}

TEST_CASE("groups of cards share a server's requests and wait for the fullest") {
    const auto requests = draw_requests(64, 0, 100, 50, 0, 1);
    std::int64_t most = 0;
    const Serving run = serve(requests, {.groups = 4}, [&](const StepLoad& load) {
        most = std::max(most, load.sequences);
        return engine(load);
    });
    CHECK(most == 16);
    static_cast<void>(serve(requests, {.draws_groups = true, .groups = 4}, [&](const StepLoad& load) {
        most = std::max(most, load.sequences);
        return engine(load);
    }));
    CHECK(most > 16);
    CHECK(run.latency_s.mean < serve(requests, {}, engine).latency_s.mean);
    const std::vector<ServingRequest> uneven{{0, 8000, 2}, {0, 10, 2}};
    const Serving waits = serve(uneven, {.schedules_ahead = false, .groups = 2}, engine);
    CHECK(waits.requests[0].ttft_s() == approx(waits.requests[1].ttft_s()));
    // Each has a cache of its own.
    CHECK(failure_of([&] { return serve(uneven, {.cache_tokens = 4000, .groups = 4}, engine); }).message.find("room") !=
          std::string::npos);
}

TEST_CASE("a pipeline has a step under way in each stage, and none to gain for a single request") {
    const std::vector<ServingRequest> one{{0, 100, 11}};
    const Serving alone = serve(one, {.schedules_ahead = false}, constant);
    const Serving piped = serve(one, {.schedules_ahead = false, .stages = 4}, constant);
    CHECK(piped.latency_s.mean == approx(alone.latency_s.mean));
    CHECK(piped.utilisation == approx(0.25));  // the others idle meanwhile
    const auto requests = draw_requests(400, 0, 16, 100, 0, 1);
    const SchedulerOptions few{.max_sequences = 40, .schedules_ahead = false};
    SchedulerOptions staged = few;
    staged.stages = 4;
    const Serving whole = serve(requests, few, constant), parts = serve(requests, staged, constant);
    CHECK(parts.requests_per_s == approx(whole.requests_per_s).epsilon(0.05));
    CHECK(parts.mean_sequences <= 40);
    CHECK(parts.utilisation > 0.95);
    // Steps whose time is that of their sequences take as long in parts: all four stages gain.
    const auto each = [](const StepLoad& load) {
        const double s = 1e-4 * static_cast<double>(load.sequences + load.prompt_tokens);
        return StepCost{0, s, s};
    };
    CHECK(serve(requests, few, each).duration_s > 3 * serve(requests, staged, each).duration_s);
}

TEST_CASE("servers side by side share requests") {
    const auto requests = draw_requests(2000, 60, 300, 100, 0.5, 3);
    const ServerPool one{.options = {.max_sequences = 8}, .step = engine};
    ServerPool two = one;
    two.servers = 2;
    CHECK(serve(requests, two).latency_s.mean < serve(requests, one).latency_s.mean / 1.5);
    const Serving both = serve(requests, two);
    CHECK(both.utilisation <= 1 + 1e-9);
    CHECK(both.mean_outstanding == approx(both.requests_per_s * both.latency_s.mean));
}

TEST_CASE("prompts that other servers read do not hold decoding up, and their keys and values take their time") {
    const auto requests = draw_requests(200, 4, 2000, 50, 0, 3);
    const ServerPool pool{.options = {.mixes_phases = false}, .step = engine};
    std::int64_t read = 0, decoded = 0;
    ServerPool readers = pool, decoders = pool;
    readers.step = [&](const StepLoad& load) {
        read += load.prompt_tokens;
        CHECK(load.sequences == 0);
        return engine(load);
    };
    decoders.step = [&](const StepLoad& load) {
        decoded += load.sequences;
        CHECK(load.prompt_tokens == 0);
        return engine(load);
    };
    const auto apart = [&](double seconds) {
        return serve(requests, readers, decoders, [=](std::int64_t) { return seconds; });
    };
    const Serving run = apart(0);
    CHECK(read == 200 * 2000);
    CHECK(decoded == 200 * 49);
    CHECK(run.itl_s.p99 < serve(requests, pool).itl_s.p99 / 2);
    CHECK(apart(0.1).ttft_s.mean - run.ttft_s.mean == approx(0.1).epsilon(0.05));  // to a step of those that decode
    for (const RequestTimes& times : run.requests) CHECK(times.last_token_s > times.first_token_s);
    const std::vector<ServingRequest> single{{0, 100, 1}};
    CHECK(serve(single, readers, decoders, [](std::int64_t) { return 1.0; }).latency_s.mean > 1);
}

TEST_CASE("the first token of a prompt that another server has read waits for a place to go on") {
    const ServerPool readers{.step = constant};
    const ServerPool decoders{.options = {.max_sequences = 1}, .step = constant};
    const std::vector<ServingRequest> two{{0, 100, 11}, {0, 100, 11}};
    const Serving run = serve(two, readers, decoders, [](std::int64_t) { return 0.0; });
    CHECK(run.requests[0].first_token_s < run.requests[1].first_token_s);
    CHECK(run.requests[1].first_token_s == approx(run.requests[0].last_token_s).epsilon(0.02));
    CHECK(run.tpot_s.p99 == approx(run.tpot_s.p50).epsilon(0.02));  // no wait is between tokens
}

TEST_CASE("servers that decode what others read end where their cache evicts, prompts first or not") {
    for (const bool mixes : {true, false}) {
        for (const std::int64_t cache_tokens : {1600, 3200, 6400}) {
            const auto requests = draw_requests(300, 100, 100, 200, 0.5, 3);
            const ServerPool readers{.options = {.mixes_phases = mixes}, .step = engine};
            ServerPool decoders = readers;
            decoders.options.cache_tokens = cache_tokens;
            const Serving run = serve(requests, readers, decoders, [](std::int64_t) { return 0.0; });
            CHECK(run.evictions > 0);
            CHECK(run.requests.size() == 300);
        }
    }
}

TEST_CASE("a scheduler that seldom looks for requests lets them wait") {
    std::vector<ServingRequest> requests{{0, 10, 200}, {0.1, 10, 2}};
    const auto wait_s = [&](std::int64_t steps) {
        return serve(requests, {.poll_steps = steps, .schedules_ahead = false}, constant).requests[1].ttft_s();
    };
    CHECK(wait_s(1) < 0.03);
    CHECK(wait_s(50) > 0.3);
    CHECK(wait_s(50) <= 0.52);
}

TEST_CASE(
    "prompts wait beside decoding sequences for as many steps, or until a step is as full, as the engine is set to") {
    const std::vector<ServingRequest> requests{{0, 10, 200}, {0.1, 10, 2}, {0.3, 60, 2}};
    const auto waits_s = [&](std::int64_t steps, double share) {
        const Serving run =
            serve(requests, {.max_tokens = 100, .schedules_ahead = false, .gather_steps = steps, .gather_share = share},
                  constant);
        return std::pair(run.requests[1].ttft_s(), run.requests[2].ttft_s());
    };
    CHECK(waits_s(0, 1).first < 0.03);
    CHECK(waits_s(15, 1).first == approx(0.15 + waits_s(0, 1).first));
    // 60 tokens of the third request, 10 of the second and that of the first.
    CHECK(waits_s(100, 0.71).first == approx(0.21));
    CHECK(waits_s(100, 0.72).first == approx(1.0 + waits_s(0, 1).first));
    CHECK(waits_s(100, 0.71).second < 0.03);
    // Without a sequence that decodes, none waits.
    CHECK(serve({{0, 10, 2}}, {.gather_steps = 50}, constant).ttft_s.mean == approx(0.01));
}

TEST_CASE("groups let prompts wait until each of them has one, at most for so many steps") {
    // Four requests give both groups sequences that decode, then one arrives, and later another.
    const std::vector<ServingRequest> requests{{0, 10, 400}, {0, 10, 400}, {1, 10, 2}, {1.2, 10, 2}};
    const auto first_s = [&](std::int64_t steps) {
        return serve(requests, {.schedules_ahead = false, .groups = 2, .balance_steps = steps}, constant)
            .requests[2]
            .ttft_s();
    };
    CHECK(first_s(0) < 0.03);
    CHECK(first_s(1000) == approx(0.2 + first_s(0)));
    // The steps count on without a request: 100 at one second.
    CHECK(first_s(105) == approx(0.05).epsilon(0.3));
}

TEST_CASE("a step encodes the images whose tokens begin in its part of a prompt") {
    std::vector<std::int64_t> images;
    const auto step = [&](const StepLoad& load) {
        if (load.prompt_tokens > 0) images.push_back(load.images);
        return constant(load);
    };
    SchedulerOptions options{.max_tokens = 256};
    options.images = 2;
    options.image_tokens = 300;
    static_cast<void>(serve({{0, 700, 3}}, options, step));
    CHECK(images == std::vector<std::int64_t>{1, 1, 0});
    images.clear();
    options.max_tokens = 8192;
    static_cast<void>(serve({{0, 700, 3}, {0, 650, 3}}, options, step));
    CHECK(images == std::vector<std::int64_t>{4});
    images.clear();
    options.shared_prefix = 0.5;  // of which the first image is a part
    static_cast<void>(serve({{0, 700, 3}}, options, step));
    CHECK(images == std::vector<std::int64_t>{0});
}

TEST_CASE("the images of a step take the encoder's pass") {
    ImportOptions import;
    import.image_size = {280, 560};
    const Graph graph = import_config(
        R"({"model_type":"qwen2_vl","hidden_size":256,"num_hidden_layers":2,"num_attention_heads":8,"num_key_value_heads":4,
            "intermediate_size":512,"vocab_size":1000,"torch_dtype":"float16",
            "vision_config":{"depth":4,"embed_dim":256,"hidden_size":256,"num_heads":4}})",
        "config.json", "seeing", import);
    Generator generator(graph, device_profile("a100-sxm4-40gb"), framework_profile("vllm"),
                        {.precision = Precision::fp16});
    StepTable table(generator, {});
    StepLoad load{.prompt_tokens = 500, .prompt_keys = 250, .sequences = 8, .context = 300};
    const StepCost text = table(load);
    for (const std::int64_t images : {1, 5, 1}) {
        load.images = images;
        const Prediction encoder = generator.encode(images);
        const StepCost both = table(load);
        CHECK(both.latency_s == approx(text.latency_s + encoder.latency_s));
        CHECK(both.device_s == approx(text.device_s + encoder.device_s));
        CHECK(both.host_s == approx(text.host_s + encoder.host_s));
        CHECK(both.energy_j > text.energy_j);
    }
}
