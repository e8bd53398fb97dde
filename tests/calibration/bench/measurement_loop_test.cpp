#include "calibration/bench/measurement_loop.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "tests/approx.hpp"
#include "tests/calibration/bench/fake_device.hpp"

using namespace ftax::bench;
using ftax::bench::test::FakeDevice;

namespace {

struct Run {
    FakeDevice device;
    LoopOptions options{.limits = {.min_samples = 3, .min_total_s = 0, .relative_stddev = 0.5, .max_total_s = 1}};
    std::vector<BenchCase> cases{{.id = "a"}, {.id = "b"}, {.id = "c"}, {.id = "d"}};
    std::multimap<std::string, CaseResult> kept;
    std::map<std::pair<std::string, int>, bool> done;
    std::size_t progressed = 0;
    double paused_s = 0;
    int samples_until_interrupt = std::numeric_limits<int>::max();

    bool operator()() {
        int checks = 0;
        const auto sample = device.on_sample;
        device.on_sample = [&checks, sample] {
            ++checks;
            return sample();
        };
        const bool complete = measure(cases, device, options,
                                      {.is_done =
                                           [&](const BenchCase& c, int r) {
                                               return done.contains({c.id, r});
                                           },
                                       .keep = [&](const BenchCase& c, const CaseResult& r) { kept.emplace(c.id, r); },
                                       .interrupted = [&] { return checks >= samples_until_interrupt; },
                                       .pause = [&](double seconds) { paused_s += seconds; },
                                       .progress = [&](std::size_t n, std::size_t) { progressed = n; }});
        device.on_sample = sample;
        return complete;
    }
    const CaseResult& only(const std::string& id) const {
        REQUIRE(kept.count(id) == 1);
        return kept.find(id)->second;
    }
};

}  // namespace

TEST_CASE("each repetition visits every case once, in an order of its own") {
    Run run;
    run.options.repetitions = 3;
    REQUIRE(run());
    CHECK(run.kept.size() == 12);
    CHECK(run.progressed == 12);
    std::vector<std::vector<std::string>> orders;
    for (std::size_t i = 0; i < 12; i += 4) {
        orders.emplace_back(run.device.prepared.begin() + static_cast<std::ptrdiff_t>(i),
                            run.device.prepared.begin() + static_cast<std::ptrdiff_t>(i + 4));
        std::vector<std::string> sorted = orders.back();
        std::sort(sorted.begin(), sorted.end());
        CHECK(sorted == std::vector<std::string>{"a", "b", "c", "d"});
    }
    CHECK((orders[0] != orders[1] || orders[1] != orders[2]));
}

TEST_CASE("one repetition alone is the one that all of them would have had") {
    Run all, one;
    all.options.repetitions = one.options.repetitions = 3;
    one.options.only_repetition = 1;
    REQUIRE(all());
    REQUIRE(one());
    CHECK(one.device.prepared ==
          std::vector<std::string>(all.device.prepared.begin() + 4, all.device.prepared.begin() + 8));
    CHECK(one.only("a").repetition == 1);
    CHECK(one.progressed == 4);
}

TEST_CASE("the first sample of a case, which the host may have bound, does not count") {
    Run run;
    int next = 0;
    run.device.on_sample = [&] { return Sample{next++ % 4 == 0 ? 9.0 : 0.1}; };
    run.options.settling_samples = 1;
    REQUIRE(run());
    for (const auto& kept : run.kept) CHECK(kept.second.samples_s == std::vector<double>{0.1, 0.1, 0.1});
}

TEST_CASE("every sample that counts is kept, with why measuring stopped") {
    Run run;
    int next = 0;
    run.device.on_sample = [&] { return Sample{static_cast<double>(++next)}; };
    run.options.limits.max_total_s = 6;
    run.cases.resize(1);
    REQUIRE(run());
    const CaseResult& result = run.only("a");
    CHECK(result.samples_s == std::vector<double>{1, 2, 3});
    CHECK(result.stopped == "time limit");
    CHECK(result.problem.empty());
}

TEST_CASE("samples of a hot card do not count, those at its power limit do") {
    Run run;
    run.cases.resize(1);
    int next = 0;
    run.device.on_sample = [&] {
        return Sample{0.1 * ++next, 0.9, next == 2 ? "thermal" : next == 3 ? "power cap and hardware" : "power cap"};
    };
    REQUIRE(run());
    CHECK(run.only("a").samples_s == std::vector<double>{0.1, 0.4, 0.5});
    CHECK(run.only("a").discarded == 2);
    CHECK(run.only("a").slowdown == "power cap");
    run.device.on_sample = [] { return Sample{0.1, 0.9, "thermal"}; };
    run.kept.clear();
    REQUIRE(run());
    CHECK(run.only("a").problem.find("throttled") != std::string::npos);
}

TEST_CASE("BAD_INPUTS 46: samples under a throttled clock are discarded and the device gets a pause") {
    Run run;
    run.cases.resize(1);
    int count = 0;
    run.device.on_sample = [&] { return ++count <= 4 ? Sample{9, 0.5} : Sample{1e-3, 0.98}; };
    REQUIRE(run());
    CHECK(run.only("a").discarded == 4);
    CHECK(run.only("a").samples_s == std::vector<double>(3, 1e-3));
    CHECK(*run.only("a").clock_ratio == approx(0.98));
    CHECK(run.paused_s == approx(4));
}

TEST_CASE("BAD_INPUTS 46: a clock that stays throttled marks the case, which is not averaged in") {
    Run run;
    run.device.on_sample = [] { return Sample{9, 0.5}; };
    REQUIRE(run());
    CHECK(run.only("b").problem == "failed: the device's clock is throttled");
    CHECK(run.only("b").samples_s.empty());
}

TEST_CASE("the steady state of a power-limited card, 0.7 of its largest clock, is not throttling") {
    Run run;
    run.device.on_sample = [] { return Sample{1e-3, 0.65}; };
    REQUIRE(run());
    CHECK(run.only("b").problem.empty());
    CHECK(run.only("b").discarded == 0);
    CHECK(*run.only("b").clock_ratio == approx(0.65));
}

TEST_CASE("BAD_INPUTS 46: a sample beside another process on the GPU does not count") {
    Run run;
    run.cases.resize(1);
    int count = 0;
    run.device.on_sample = [&] { return Sample{++count % 2 == 0 ? 5e-3 : 1e-3, 1.0, {}, count % 2 == 0}; };
    REQUIRE(run());
    CHECK(run.only("a").samples_s == std::vector<double>(3, 1e-3));
    CHECK(run.only("a").discarded == 2);
    run.kept.clear();
    run.device.on_sample = [] { return Sample{1e-3, 1.0, {}, true}; };
    REQUIRE(run());
    CHECK(run.only("a").problem == "failed: another process uses the device");
}

TEST_CASE("BAD_INPUTS 46: out of memory in the middle of the samples leaves no latency") {
    Run run;
    run.cases.resize(1);
    int count = 0;
    run.device.on_sample = [&]() -> std::variant<Sample, Failure> {
        if (++count == 3) return Failure{FailureKind::out_of_memory, "tried to allocate 2 GiB"};
        return Sample{1e-3};
    };
    REQUIRE(run());
    CHECK(run.only("a").problem == "out of memory: tried to allocate 2 GiB");
    CHECK(run.only("a").samples_s.empty());
}

TEST_CASE("BAD_INPUTS 46: a clock that steps back or is not a number never becomes a latency") {
    for (const double stepped :
         {-1.0, 0.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        Run run;
        run.cases.resize(1);
        bool first = true;
        run.device.on_sample = [&] { return Sample{std::exchange(first, false) ? stepped : 1e-3}; };
        REQUIRE(run());
        CHECK(run.only("a").samples_s == std::vector<double>(3, 1e-3));
    }
}

TEST_CASE("BAD_INPUTS 46: out of memory in the middle costs its case only") {
    Run run;
    run.device.on_prepare = [](const BenchCase& c) -> std::optional<Failure> {
        if (c.id == "c") return Failure{FailureKind::out_of_memory, "tried to allocate 20 GiB"};
        return std::nullopt;
    };
    REQUIRE(run());
    CHECK(run.only("c").problem == "out of memory: tried to allocate 20 GiB");
    for (const char* id : {"a", "b", "d"}) CHECK(run.only(id).problem.empty());
}

TEST_CASE("BAD_INPUTS 46: a lost device is restarted once per loss, and ends the run where it cannot be") {
    Run run;
    int restarts = 0;
    run.device.on_prepare = [](const BenchCase& c) -> std::optional<Failure> {
        if (c.id == "b") return Failure{FailureKind::device_lost, "the worker died"};
        return std::nullopt;
    };
    run.device.on_restart = [&] { return ++restarts > 0; };
    REQUIRE(run());
    CHECK(restarts == 1);
    CHECK(run.kept.size() == 4);
    run.kept.clear();
    run.device.on_restart = [] { return false; };
    CHECK_FALSE(run());
    CHECK(run.only("b").problem == "device lost: the worker died");
}

TEST_CASE("an interruption keeps complete cases and drops the one under way") {
    Run run;
    run.samples_until_interrupt = 7;  // two cases of three samples, one sample of the third
    CHECK_FALSE(run());
    CHECK(run.kept.size() == 2);
    for (const auto& [id, result] : run.kept) CHECK(result.samples_s.size() == 3);
}

TEST_CASE("what an earlier run has measured is not measured again") {
    Run run;
    run.options.repetitions = 2;
    run.done = {{{"a", 0}, true}, {{"a", 1}, true}, {{"b", 1}, true}};
    REQUIRE(run());
    CHECK(run.kept.count("a") == 0);
    CHECK(run.kept.count("b") == 1);
    CHECK(run.kept.count("c") == 2);
    CHECK(run.progressed == 8);
}

TEST_CASE("repetitions that ask for it run in processes of their own") {
    Run run;
    int restarts = 0;
    run.device.on_restart = [&] { return ++restarts > 0; };
    run.options.repetitions = 3;
    REQUIRE(run());
    CHECK(restarts == 0);
    run.options.fresh_processes = true;
    REQUIRE(run());
    CHECK(restarts == 2);
}
