#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/approx.hpp"
#include "tests/cli/command.hpp"

using namespace ftax::test;

namespace {

const std::vector<std::string> lengths{"--prompt", "512", "--new-tokens", "64"};

ProgramRun serve(const std::vector<std::string>& more, const std::vector<std::string>& tokens = lengths) {
    std::vector<std::string> words{"serve", "llama-3-8b", "--framework", "vllm@0.11", "-q"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), tokens.begin(), tokens.end());
    return run_ftax(words);
}

nlohmann::json served(std::vector<std::string> more, const std::vector<std::string>& tokens = lengths) {
    more.insert(more.end(), {"--json", "-"});
    const ProgramRun run = serve(more, tokens);
    REQUIRE_MESSAGE(run.exit_code == 0, run.output);
    return nlohmann::json::parse(run.output);
}

const std::vector<std::string> h100{"--device", "h100-sxm5-80gb"};

std::vector<std::string> on_h100(std::vector<std::string> more) {
    more.insert(more.end(), h100.begin(), h100.end());
    return more;
}

}  // namespace

TEST_CASE("ftax serve ranks combinations by cost among those that keep the SLO") {
    const TemporaryFolder folder;
    const std::string page = folder.file("page.html");
    const auto json = served({"--device", "t4,h100-sxm5-80gb,l40s", "--precision", "bf16,fp8", "--rate", "8", "--slo",
                              "ttft=500ms,tpot=30ms", "--price", "0.5,3,1", "--html", page});
    REQUIRE(json["rows"].size() == 6);
    bool kept = true;
    double dollars = 0;
    for (const auto& row : json["rows"]) {
        if (row.contains("skipped")) continue;
        const bool keeps = row["keeps_level"];
        CHECK((kept || !keeps));
        if (keeps != kept) dollars = 0;
        kept = keeps;
        CHECK(row["dollars_per_million"].get<double>() >= dollars);
        dollars = row["dollars_per_million"];
        CHECK(row["ttft_p50_s"] <= row["ttft_p99_s"]);
        CHECK(row["power_w"].get<double>() ==
              approx(row["energy_per_item_j"].get<double>() * row["tokens_per_s"].get<double>()));
        CHECK(row["power_w"] < 700);
        CHECK(row["tpot_low_s"] < row["tpot_mean_s"]);
        CHECK(row["tpot_high_s"] > row["tpot_mean_s"]);
        CHECK(row["latency_high_s"].get<double>() / row["latency_mean_s"].get<double>() ==
              approx(row["tpot_high_s"].get<double>() / row["tpot_mean_s"].get<double>()));
        CHECK(row["latency_mean_s"].get<double>() >= row["ttft_mean_s"].get<double>());
        CHECK(row["mean_outstanding"].get<double>() ==
              approx(row["requests_per_s"].get<double>() * row["latency_mean_s"].get<double>()));
    }
    CHECK(json["rows"].back().contains("skipped"));  // 16 GB do not hold the model
    const std::string html = read_text(page);
    for (const char* part : {"id=\"best\"", "id=\"combinations\"", "latency: p50, shaded to p99", "The best over time"})
        CHECK(html.find(part) != std::string::npos);
}

TEST_CASE("ftax serve says the rate that holds, and finds the largest that keeps an SLO") {
    const auto saturated = served(on_h100({"--rate", "500"}))["rows"][0];
    CHECK(saturated["warnings"].dump().find("saturated") != std::string::npos);
    CHECK(saturated["largest_rate"].get<double>() < 500);
    const auto found = served(on_h100({"--rate", "5", "--slo", "ttft=200ms", "--find-rate"}))["rows"][0];
    const double rate = found["largest_rate"];
    CHECK(rate < saturated["largest_rate"].get<double>());
    const auto at = [&](double factor) {
        return served(on_h100({"--rate", std::to_string(factor * rate), "--slo", "ttft=200ms"}))["rows"][0];
    };
    CHECK(at(0.99)["keeps_level"] == true);
    CHECK(at(1.1)["keeps_level"] == false);
    const auto hopeless = served(on_h100({"--rate", "5", "--slo", "ttft=1us", "--find-rate"}));
    CHECK(hopeless["rows"][0]["keeps_level"] == false);
    CHECK(hopeless["rows"][0]["largest_rate"] == 0);
    CHECK(hopeless["warnings"].dump().find("no combination") != std::string::npos);
}

TEST_CASE("a server that keeps up is recommended and costs the same whichever arrivals are drawn") {
    const auto rows_of = [](const std::vector<std::string>& more) {
        std::vector<std::string> words{
            "serve", "llama-3-70b", "--device", "h100-sxm5-80gb", "--framework", "vllm", "--tp",   "2,4,8", "--rate",
            "5",     "--prompt",    "1000",     "--new-tokens",   "300",         "-q",   "--json", "-"};
        words.insert(words.end(), more.begin(), more.end());
        const ProgramRun run = run_ftax(words);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output);
    };
    const auto plain = rows_of({});
    bool saturated = false;
    for (const auto& row : plain["rows"]) {
        CHECK(row["saturated"].get<bool>() >= saturated);
        saturated = row["saturated"];
    }
    CHECK(plain["rows"][0]["saturated"] == false);
    CHECK(saturated);
    CHECK(plain["verdict"].get<std::string>().find("each of") == std::string::npos);
    std::map<int, double> dollars;
    for (const char* seed : {"1", "2"}) {
        const auto report = rows_of({"--price", "3", "--seed", seed, "--spread", "0.3"});
        for (const auto& row : report["rows"]) {
            if (row["saturated"] == true) continue;
            const int cards = row["cards"];
            // 3 dollars an hour for 5 * 300 tokens a second.
            CHECK(row["dollars_per_million"].get<double>() == approx(cards * 3 / 3600.0 / (5 * 300) * 1e6));
        }
    }
    const ProgramRun table = run_ftax({"serve", "llama-3-8b", "--device", "h100-sxm5-80gb", "--framework", "vllm",
                                       "--rate", "2", "--count", "50", "--prompt", "100", "--new-tokens", "20"});
    CHECK(table.output.find("order: fewest cards, then p99 latency; servers that do not keep up") != std::string::npos);
    CHECK(run_ftax({"serve", "--help"}).output.find("else fewest cards") != std::string::npos);
}

TEST_CASE("generate and serve agree on whether a model fits") {
    const auto fits = [](const char* framework, const std::vector<std::string>& more) {
        std::vector<std::string> generate{"generate",     "llama-3-70b", "--device", "h100-sxm5-80gb", "--framework",
                                          framework,      "--precision", "fp8",      "--prompt",       "512",
                                          "--new-tokens", "64",          "-q",       "--json",         "-"};
        std::vector<std::string> serve{"serve",
                                       "llama-3-70b",
                                       "--device",
                                       "h100-sxm5-80gb",
                                       "--framework",
                                       framework,
                                       "--precision",
                                       "fp8",
                                       "--prompt",
                                       "512",
                                       "--new-tokens",
                                       "64",
                                       "--rate",
                                       "0.1",
                                       "--count",
                                       "5",
                                       "-q",
                                       "--json",
                                       "-"};
        for (auto* words : {&generate, &serve}) words->insert(words->end(), more.begin(), more.end());
        const ProgramRun generated = run_ftax(generate), served = run_ftax(serve);
        REQUIRE_MESSAGE(generated.exit_code == 0, generated.errors);
        const bool is_generated = nlohmann::json::parse(generated.output)["predictions"][0]["fits"];
        CHECK_MESSAGE(is_generated == (served.exit_code == 0), generated.output, served.errors);
        return is_generated;
    };
    for (const char* framework : {"vllm", "sglang", "tensorrt-llm"}) {
        // 72.7 GB of weights; SGLang's share is for these and the cache, TensorRT-LLM's is of what they leave free.
        CHECK(fits(framework, {"--gpu-memory-utilization", "0.85"}) == (std::string(framework) != "vllm"));
        CHECK(fits(framework, {"--tp", "2"}));
        for (const char* share : {"0.88", "0.9", "0.92", "0.95", "0.99"})
            static_cast<void>(fits(framework, {"--gpu-memory-utilization", share}));
    }
    CHECK(run_ftax({"generate", "llama-3-8b", "--device", "h100-sxm5-80gb", "--prompt", "8", "--new-tokens", "8",
                    "--gpu-memory-utilization", "0.5"})
              .errors.find("pytorch-eager does not reserve memory") != std::string::npos);
}

TEST_CASE("SGLang's groups share the limit of sequences, those of vLLM have one each") {
    for (const auto& [framework, most] : {std::pair("sglang", 4), {"vllm", 8}}) {
        const ProgramRun run = run_ftax(
            {"serve", "qwen3-30b-a3b",  "--device", "h100-sxm5-80gb", "-q", "--framework", framework, "--dp",
             "2",     "--max-num-seqs", "4",        "--concurrency",  "8",  "--count",     "40",      "--prompt",
             "200",   "--new-tokens",   "50",       "--json",         "-"});
        REQUIRE(run.exit_code == 0);
        const double sequences = nlohmann::json::parse(run.output)["rows"][0]["mean_sequences"];
        CHECK(sequences > 0.8 * most);
        CHECK(sequences <= most);
    }
}

TEST_CASE("an engine that schedules ahead hides its host behind the device") {
    const auto tpot = [](const char* framework) {
        const ProgramRun run =
            run_ftax({"serve", "llama-3-8b", "--device", "h100-sxm5-80gb", "-q", "--framework", framework,
                      "--concurrency", "64", "--prompt", "64", "--new-tokens", "512", "--json", "-"});
        REQUIRE(run.exit_code == 0);
        return nlohmann::json::parse(run.output)["rows"][0]["tpot_mean_s"].get<double>();
    };
    CHECK(tpot("vllm") < 0.75 * tpot("vllm@0.3"));
}

TEST_CASE("combinations that are served side by side have the results and warnings of each alone, in order") {
    const auto served = [](const std::string& devices, const std::string& precisions) {
        const ProgramRun run =
            run_ftax({"serve", "llama-3-8b", "--device", devices, "--framework", "vllm", "--precision", precisions,
                      "--concurrency", "4", "--prompt", "64", "--new-tokens", "16", "--count", "20", "--json", "-"});
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return std::pair(nlohmann::json::parse(run.output)["rows"], run.errors);
    };
    const auto [together, warnings] = served("h100-sxm5-80gb,l4,a10g", "bf16,fp8");
    CHECK(together.size() == 6);
    for (const auto& row : together) {
        if (row.contains("skipped")) continue;  // an A10G has no fp8
        const auto alone = served(row["device"], row["precision"]).first;
        CHECK(alone[0]["latency_mean_s"] == row["latency_mean_s"]);
        CHECK(alone[0]["warnings"] == row["warnings"]);
    }
    for (int i = 0; i < 3; ++i) CHECK(served("h100-sxm5-80gb,l4,a10g", "bf16,fp8").second == warnings);
    const auto quietly = [] {
        return run_ftax({"serve", "llama-3-8b", "--device", "rtx-3090,a40,l4,a10g", "--framework", "vllm,sglang", "-q",
                         "--precision", "bf16", "--concurrency", "4", "--prompt", "64", "--new-tokens", "16", "--count",
                         "20", "--json", "-"})
            .output;
    };
    const std::string once = quietly();
    for (int i = 0; i < 5; ++i) CHECK(quietly() == once);
}

TEST_CASE("cards are shared by layers, groups, stages and servers, and paid for") {
    const std::vector<std::string> load{"--rate", "4", "--count", "100", "--price", "2"};
    const auto row = [&](std::vector<std::string> more) {
        more.insert(more.end(), load.begin(), load.end());
        return served(on_h100(more))["rows"][0];
    };
    const auto one = row({});
    CHECK(!one.contains("layout"));
    const auto doubled = row({"--replicas", "2"});
    CHECK(doubled["cards"] == 2);
    CHECK(doubled["layout"] == "2 x tp 1");
    CHECK(doubled["dollars_per_million"].get<double>() ==
          approx(2 * one["dollars_per_million"].get<double>()).epsilon(0.01));
    const auto groups = row({"--dp", "2"});
    CHECK(groups["cards"] == 2);
    CHECK(groups["cache_tokens"].get<std::int64_t>() == approx(2 * one["cache_tokens"].get<double>()).epsilon(0.01));
    const auto stages = row({"--pp", "2"});
    CHECK(stages["memory"]["weights_bytes"].get<double>() ==
          approx(one["memory"]["weights_bytes"].get<double>() / 2).epsilon(0.01));
    CHECK(stages["cache_tokens"].get<double>() > 2 * one["cache_tokens"].get<double>());
    const auto apart = row({"--prefill", "servers=2"});
    CHECK(apart["cards"] == 3);
    CHECK(apart["layout"] == "prefill 2 x tp 1, decode tp 1");
    const auto few = row({"--prefill", "servers=2", "--max-num-seqs", "1"});  // places to decode
    CHECK(few["ttft_p50_s"].get<double>() > 2 * apart["ttft_p50_s"].get<double>());
    const auto slow = row({"--prefill", "servers=2", "--transfer-bandwidth", "1e8"});
    // 512 tokens of 128 KiB at 100 MB/s.
    CHECK(slow["ttft_p50_s"].get<double>() - apart["ttft_p50_s"].get<double>() == approx(0.67).epsilon(0.05));
}

TEST_CASE("SGLang runs the sequences whose states have slots, 48 with drafts; vLLM keeps states with the keys") {
    const auto row = [](const std::string& model, std::vector<std::string> more) {
        std::vector<std::string> words{"serve",        model,  "--device",      "h200-sxm-141gb",
                                       "--precision",  "bf16", "--prompt",      "64",
                                       "--new-tokens", "64",   "--concurrency", "400",
                                       "--count",      "400",  "--json",        "-"};
        words.insert(words.end(), more.begin(), more.end());
        const ProgramRun run = run_ftax(words);
        REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
        return nlohmann::json::parse(run.output)["rows"][0];
    };
    const std::string hybrid = FTAX_SOURCE_DIR "/tests/regression/configs/qwen3.5-27b.json";
    const auto slots = row(hybrid, {"--framework", "sglang", "--gpu-memory-utilization", "0.8"});
    // 48 layers with 48 matrices of 128 x 128 values in f32 and four taps of 10,240 channels in bf16.
    const double state = 48.0 * (48 * 128 * 128 * 4 + 4 * 10240 * 2);
    const double room = 0.8 * 151397597184.0 - slots["memory"]["weights_bytes"].get<double>();
    const double sequences = std::floor((room * 0.9 / 1.9 / state - 1) / 5);
    CHECK(slots["mean_sequences"] <= sequences + 1e-9);
    CHECK(slots["mean_sequences"] > 0.8 * sequences);
    // Keys and values of 16 layers with four heads of 256.
    CHECK(slots["cache_tokens"].get<double>() == approx(room / 1.9 / (16 * 2 * 4 * 256 * 2)).epsilon(0.02));
    CHECK(row(hybrid, {"--framework", "vllm"})["mean_sequences"] > 2 * sequences);
    CHECK(row("llama-3-8b", {"--framework", "sglang"})["mean_sequences"] > 200);
    CHECK(row("llama-3-8b", {"--framework", "sglang", "--draft-tokens", "1", "--draft", "ngram"})["mean_sequences"] <=
          48);
}

TEST_CASE("a search of layouts finds the cheapest that keeps the SLO, and says how to launch it") {
    const TemporaryFolder folder;
    const std::string page = folder.file("page.html");
    const auto json = served({"--device", "h100-sxm5-80gb,l40s", "--price", "3,1", "--cards", "4", "--rate", "30",
                              "--slo", "ttft_p99=2s,tpot_p99=20ms", "--html", page});
    const auto& rows = json["rows"];
    const auto schema = nlohmann::json::parse(run_ftax({"schema", "serve"}).output);
    for (const auto& cell : rows[0].items())
        CHECK_MESSAGE(schema["properties"]["rows"]["items"]["properties"].contains(cell.key()), cell.key());
    CHECK(rows[0]["keeps_level"] == true);
    CHECK(json["verdict"].get<std::string>().find(" than tp 4") != std::string::npos);
    CHECK(rows[0]["commands"][0].get<std::string>().starts_with("vllm serve llama-3-8b"));
    CHECK(read_text(page).find("<code>vllm serve llama-3-8b") != std::string::npos);
    CHECK(rows[0]["commands"].back() ==
          "vllm bench serve --ignore-eos --percentile-metrics ttft,tpot,itl,e2el --model llama-3-8b --dataset-name "
          "random "
          "--random-input-len 512 --random-output-len 64 --num-prompts 1000 --request-rate 30");
    std::size_t front = 0, apart = 0, saturated = 0;
    for (const auto& row : rows) {
        if (row.contains("skipped")) {  // fewer of servers that do not keep up
            CHECK(row["skipped"].get<std::string>().starts_with("more of these servers"));
            CHECK(4 % row.at("cards").get<int>() == 0);
            CHECK(row.at("layout").get<std::string>().find("tp") != std::string::npos);
            continue;
        }
        CHECK(4 % row["cards"].get<int>() == 0);
        apart += row["layout"].get<std::string>().starts_with("prefill") ? 1 : 0;
        front += row["pareto"] == true ? 1 : 0;
        saturated += row["saturated"] == true ? 1 : 0;
        const double dollars = row["dollars_per_million"], latency_s = row["latency_p99_s"];
        if (row["keeps_level"] == true && row["saturated"] == false)
            CHECK(dollars >= 0.999 * rows[0]["dollars_per_million"].get<double>());
        bool beaten = row["saturated"];
        for (const auto& other : rows) {
            if (other.contains("skipped") || other["saturated"] == true) continue;
            const double others = other["dollars_per_million"], others_s = other["latency_p99_s"];
            beaten = beaten || (others_s < latency_s && others < 1.005 * dollars) ||
                     (others_s == latency_s && others < dollars);
        }
        CHECK(row["pareto"] == !beaten);
    }
    CHECK(front > 1);
    CHECK(apart > 1);
    CHECK(saturated > 0);
    CHECK(read_text(page).find("$ per million tokens") != std::string::npos);
    // A layout of the search is what its options give alone.
    const auto alone = served(on_h100({"--tp", "2", "--replicas", "2", "--rate", "30", "--price", "3"}))["rows"][0];
    bool found = false;
    for (const auto& row : rows) {
        if (row.at("layout") != alone.at("layout") || row.at("device") != alone.at("device")) continue;
        found = true;
        for (const char* figure : {"latency_p99_s", "power_w", "dollars_per_million", "cache_tokens"})
            CHECK(row[figure].get<double>() == approx(alone[figure].get<double>()));
    }
    CHECK(found);
}

TEST_CASE("each engine is launched with its own options") {
    const auto command = [](const char* engine, const char* layout, std::size_t number = 0,
                            const char* precision = "fp8") -> std::string {
        const ProgramRun run = run_ftax({"serve",
                                         "qwen3-30b-a3b",
                                         "-q",
                                         "--device",
                                         "h100-sxm5-80gb",
                                         "--framework",
                                         engine,
                                         "--precision",
                                         precision,
                                         "--cards",
                                         "4",
                                         "--concurrency",
                                         "8",
                                         "--prompt",
                                         "100",
                                         "--new-tokens",
                                         "10",
                                         "--count",
                                         "20",
                                         "--max-num-seqs",
                                         "64",
                                         "--json",
                                         "-"});
        REQUIRE_MESSAGE(run.exit_code == 0, run.output);
        const auto json = nlohmann::json::parse(run.output);
        for (const auto& row : json["rows"])
            if (row["layout"] == layout) return row["commands"][number];
        return "";
    };
    CHECK(command("vllm", "tp 4", 0, "fp16").find(" --dtype float16") != std::string::npos);
    CHECK(command("tensorrt-llm", "tp 4", 0, "fp16").find("dtype: float16\\n") != std::string::npos);
    CHECK(command("vllm", "tp 2 dp 2 ep 4") ==
          "vllm serve qwen3-30b-a3b --tensor-parallel-size 2 --data-parallel-size 2 --enable-expert-parallel "
          "--max-num-seqs 64 --quantization fp8 --kv-cache-dtype fp8");
    CHECK(command("sglang", "prefill tp 2, decode 2 x tp 1") ==
          "python -m sglang.launch_server --model-path qwen3-30b-a3b --tp-size 2 "
          "--quantization fp8 --kv-cache-dtype fp8_e4m3 --disaggregation-mode prefill  # 1 prefill server");
    CHECK(command("sglang", "tp 1 dp 4 ep 4").find("--tp-size 4 --enable-dp-attention --dp-size 4 --ep-size 4 ") !=
          std::string::npos);
    CHECK(command("sglang", "2 x tp 2", 1).ends_with("--num-prompts 20 --max-concurrency 8"));
    CHECK(command("tensorrt-llm", "tp 1 dp 4") ==
          "trtllm-serve qwen3-30b-a3b --tp_size 4 --max_batch_size 64 --extra_llm_api_options <(printf "
          "'enable_attention_dp: true\\nkv_cache_config: {dtype: fp8}\\n')");
    CHECK(command("tensorrt-llm", "tp 2 dp 2") == "");  // its groups are cards
}

TEST_CASE("a search skips parts that the model cannot be cut into, and counts cards that serve no layout") {
    std::size_t cut = 0;
    const auto six = served(on_h100({"--cards", "6", "--rate", "5", "--count", "50"}));
    for (const auto& row : six["rows"]) {
        if (row.contains("skipped"))
            cut += row["skipped"].get<std::string>().find("are not divisible by") != std::string::npos;
        const std::string layout = row["layout"];
        CHECK((row.contains("skipped") || layout.find("tp 3") == std::string::npos));
        CHECK(layout.find("dp") == std::string::npos);  // for experts
    }
    CHECK(cut > 0);
    CHECK(serve(on_h100({"--cards", "2", "--rate", "1", "--count", "20", "--top", "1"}))
              .output.find("5 layouts, above") != std::string::npos);
    const ProgramRun run = serve({"--device", "all", "--cards", "1", "--rate", "1", "--count", "20"});
    CHECK(run.exit_code == 0);
    const std::size_t first = run.output.find("cards that cannot serve: ");
    CHECK(first != std::string::npos);
    CHECK(run.output.find(", the first ", first) != std::string::npos);
    CHECK(run.output.find("cannot serve", first + 20) == std::string::npos);
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"--tp", "2"}, {"--replicas", "2"}, {"--prefill", "tp=1"}, {"--draft-tokens", "2"}}) {
        std::vector<std::string> words = on_h100({"--cards", "2", "--rate", "1"});
        words.insert(words.end(), more.begin(), more.end());
        CHECK(serve(words).exit_code == 2);
    }
    CHECK(run_ftax({"serve", "resnet50", "--device", "t4", "--cards", "2", "--rate", "1"}).exit_code == 2);
}

TEST_CASE("right drafts make tokens faster, wrong ones slower") {
    const auto tpot_s = [&](std::vector<std::string> more) {
        more.insert(more.end(), {"--concurrency", "4", "--count", "20"});
        return served(on_h100(more))["rows"][0]["tpot_mean_s"].get<double>();
    };
    const double plain = tpot_s({}), head = tpot_s({"--draft-tokens", "3", "--acceptance", "0.8"});
    CHECK(head < 0.6 * plain);
    CHECK(tpot_s({"--draft-tokens", "3", "--acceptance", "0.8", "--draft", "ngram"}) < head);
    CHECK(tpot_s({"--draft-tokens", "3", "--acceptance", "0.8", "--draft", "llama-3.1-8b"}) > head);
    CHECK(tpot_s({"--draft-tokens", "3", "--acceptance", "0"}) > plain);
}

TEST_CASE("measured runs of an engine and a card anchor its decoding") {
    const TemporaryFolder folder;
    const std::string header = "gpu,framework,precision,model,isl,osl,concurrency,tp,tpot_ms\n";
    const auto clients = [&](int count, const std::string& anchors) {
        std::vector<std::string> words = on_h100(
            {"--precision", "bf16", "--concurrency", std::to_string(count), "--count", std::to_string(5 * count)});
        if (!anchors.empty()) words.insert(words.end(), {"--anchor", folder.write("anchors.csv", header + anchors)});
        return served(words)["rows"][0];
    };
    const auto milliseconds = [](const nlohmann::json& row, const char* name) { return 1e3 * row[name].get<double>(); };
    const auto anchor = [&](int count, double factor,
                            const std::string& rest = "h100-sxm5-80gb,vllm@0.11,bf16,llama-3-8b") {
        const double measured = factor * milliseconds(clients(count, ""), "tpot_mean_s");
        return rest + ",512,64," + std::to_string(count) + ",1," + std::to_string(measured) + "\n";
    };
    const auto before = clients(24, ""), right = clients(24, anchor(20, 1) + anchor(32, 1)),
               slow = clients(24, anchor(20, 1.2) + anchor(24, 1.2) + anchor(32, 1.2));
    const double ms = milliseconds(before, "tpot_mean_s");
    CHECK(milliseconds(right, "tpot_mean_s") == approx(ms).epsilon(0.01));
    CHECK(milliseconds(slow, "tpot_mean_s") == approx(1.2 * ms).epsilon(0.03));
    CHECK(milliseconds(slow, "ttft_p50_s") == approx(milliseconds(before, "ttft_p50_s")).epsilon(0.3));
    CHECK(slow["power_w"].get<double>() == approx(before["power_w"].get<double>()).epsilon(0.05));
    const auto width = [](const nlohmann::json& row) {
        return row["tpot_high_s"].get<double>() / row["tpot_low_s"].get<double>();
    };
    CHECK(width(right) < width(before));
    const auto too_large = clients(24, anchor(24, 1.2, "h100-sxm5-80gb,vllm@0.11,bf16,llama-3-70b"));
    CHECK(too_large["tpot_mean_s"] == before["tpot_mean_s"]);
    CHECK(too_large["warnings"].dump().find("anchor in line 2 is left out: does not fit") != std::string::npos);
    for (const char* none : {"b200,vllm@0.11,bf16,llama-3-8b", "h100-sxm5-80gb,sglang@0.5,bf16,llama-3-8b"}) {
        const auto row = clients(24, anchor(24, 1.2, none));
        CHECK(row["tpot_mean_s"] == before["tpot_mean_s"]);
        CHECK(row["warnings"].dump().find("no anchor row is of a server with vllm@0.11 on h100-sxm5-80gb") !=
              std::string::npos);
    }
}

TEST_CASE("other models are served in batches") {
    const auto latency = [](const std::vector<std::string>& more) {
        std::vector<std::string> words{"serve",    "bert",        "--device", "t4",     "--framework",
                                       "tensorrt", "--precision", "fp16",     "--dim",  "seq=128",
                                       "--rate",   "500",         "-q",       "--json", "-"};
        words.insert(words.end(), more.begin(), more.end());
        const ProgramRun run = run_ftax(words);
        REQUIRE_MESSAGE(run.exit_code == 0, run.output);
        return nlohmann::json::parse(run.output)["rows"][0]["latency_mean_s"].get<double>();
    };
    CHECK(latency({"--max-delay", "50ms"}) > latency({}) + 5e-3);
    CHECK(latency({"--max-batch", "1"}) > latency({}));
}

TEST_CASE("ftax serve refuses what it cannot serve") {
    const TemporaryFolder folder;
    const auto refused = [&](const std::vector<std::string>& words, const std::string& text, int code = 2,
                             const std::vector<std::string>& tokens = lengths) {
        CAPTURE(text);
        const ProgramRun run = serve(on_h100(words), tokens);
        CHECK(run.exit_code == code);
        CHECK_MESSAGE((run.output + run.errors).find(text) != std::string::npos, run.errors);
    };
    refused({}, "give --rate");
    refused({"--rate", "0"}, "give --rate");
    refused({"--rate", "-1"}, "not a number of requests per second from 0");
    refused({"--rate", "nan"}, "not a number of requests per second from 0");
    refused({"--rate", "1e-300"}, "arrival_s is not a time");
    refused({"--rate", "5", "--concurrency", "5"}, "give --rate");
    refused({"--rate", "5", "--shared-prefix", "2"}, "not a share");
    refused({"--rate", "5", "--dp", "0"}, "--dp");
    refused({"--rate", "5", "--ep", "2", "--dp", "2"}, "no experts");
    refused({"--rate", "5", "--pp", "33"}, "32 layers");
    refused({"--rate", "5", "--prefill", "servers=0"}, "--prefill");
    refused({"--rate", "5", "--prefill", "cards=2"}, "--prefill");
    refused({"--rate", "5", "--draft-tokens", "-1"}, "--draft-tokens");
    refused({"--rate", "5", "--draft-tokens", "2", "--acceptance", "1.5"}, "--acceptance");
    refused({"--rate", "5", "--draft", "ngram"}, "--draft-tokens");
    refused({"--rate", "5", "--draft-tokens", "2", "--draft", "bert"}, "bert has no KV cache");
    refused({"--rate", "5", "--draft-tokens", "2", "--draft", "llama-2-7b"}, "tokens of its own");
    refused({"--rate", "5", "--gpu-memory-utilization", "90"}, "not a share");
    refused({"--rate", "5", "--gpu-memory-utilization", "0.1"}, "does not fit");
    refused({"--rate", "5", "--scheduler-recv-interval", "0"}, "--scheduler-recv-interval");
    refused({"--rate", "5", "--transfer-bandwidth", "-1"}, "--transfer-bandwidth");
    refused({"--rate", "5", "--slo", "ttft=5"}, "5 is not a time from");
    refused({"--rate", "5", "--slo", "speed=5ms"}, "ttft=500ms");
    refused({"--rate", "5", "--find-rate"}, "--slo");
    refused({"--rate", "5", "--price", "1,2"}, "--price");
    refused({"--rate", "5"}, "longer than the context", 2, {"--prompt", "9000", "--new-tokens", "10"});
    refused({"--rate", "5"}, "--prompt", 2, {});
    refused({"--rate", "5"}, "--prompt", 2, {"--prompt", "9223372036854775807", "--new-tokens", "10"});
    const auto file = [&](const char* text) {
        return std::vector<std::string>{"--requests", folder.write("requests.csv", text)};
    };
    refused(file("arrival_s,prompt,output\n"), "no requests", 6, {});
    refused(file("arrival_s,prompt\n0,1\n"), "no column output", 6, {});
    refused(file("arrival_s,prompt,output\n1,10,10\n0,10,10\n"), ":3: arrival_s", 6, {});
    refused(file("arrival_s,prompt,output\nnan,10,10\n"), ":2: arrival_s", 6, {});
    refused(file("arrival_s,prompt,output\n1e300,10,10\n"), ":2: arrival_s", 6, {});
    refused(file("arrival_s,prompt,output\n0,0,10\n"), ":2: prompt", 6, {});
    refused(file("arrival_s,prompt,output,prefix\n0,10,10,11\n"), ":2: prefix is not a number of tokens from 0 to 10",
            6, {});
    refused(file("arrival_s,prompt,output,prefix\n0,10,10,\n"), ":2: prefix", 6, {});
    refused(file("arrival_s,prompt,output\n0,10,9223372036854775807\n"), ":2: output", 6, {});
    const ProgramRun small =
        run_ftax({"serve", "llama-3.1-8b", "--device", "rtx-4070-ti", "--framework", "vllm@0.11", "--precision", "fp8",
                  "--kv-precision", "bf16", "--rate", "1", "--prompt", "25000", "--new-tokens", "100"});
    CHECK(small.exit_code == 2);
    CHECK_MESSAGE(small.errors.find("room for") != std::string::npos, small.errors);
}

TEST_CASE("vLLM 0.11 and 0.12 pad block-scaled experts to whole tiles on Hopper and Blackwell's data-centre cards") {
    const auto between_tokens_s = [](const char* framework, const char* device, const char* precision,
                                     const char* parts) {
        const ProgramRun run = run_ftax({"serve",
                                         "qwen3-30b-a3b",
                                         "--framework",
                                         framework,
                                         "--precision",
                                         precision,
                                         "--device",
                                         device,
                                         "--tp",
                                         "2",
                                         "--ep",
                                         parts,
                                         "--concurrency",
                                         "8",
                                         "--count",
                                         "16",
                                         "--prompt",
                                         "64",
                                         "--new-tokens",
                                         "200",
                                         "-q",
                                         "--json",
                                         "-"});
        REQUIRE_MESSAGE(run.exit_code == 0, run.output);
        return nlohmann::json::parse(run.output)["rows"][0]["itl_p50_s"].get<double>();
    };
    const auto padding_s = [&](const char* device, const char* precision, const char* parts) {
        const auto less_s = [&](const char* some) {  // the two differ in their host as well
            return between_tokens_s("vllm@0.12", device, some, parts) -
                   between_tokens_s("vllm@0.13", device, some, parts);
        };
        return less_s(precision) - less_s("fp8");
    };
    // 64 experts a card, each with a tile of its own: 66 tiles of 128 rows, three products of 2048 x 768 in 48 layers.
    const double computed_s = 48 * 66 * 128 * 2.0 * 3 * 2048 * 768 / 1979e12;
    CHECK(padding_s("h100-sxm5-80gb", "fp8_block", "2") > computed_s);
    CHECK(padding_s("h100-sxm5-80gb", "fp8_block", "2") < 4 * computed_s);
    // Every card has a part of all 128.
    CHECK(padding_s("h100-sxm5-80gb", "fp8_block", "1") > padding_s("h100-sxm5-80gb", "fp8_block", "2"));
    CHECK(padding_s("b200", "fp8_block", "2") > 48 * 66 * 128 * 2.0 * 3 * 2048 * 768 / 4500e12);
    CHECK(std::abs(padding_s("rtx-pro-6000-blackwell", "fp8_block", "2")) < 0.05 * computed_s);
}

TEST_CASE("vLLM 0.11 sorts logits for top-p, and tokens for experts, by kernels of their own; later versions do not") {
    const auto between_tokens_s = [](const char* framework, const char* model) {
        const ProgramRun run = run_ftax({"serve", model, "--framework", framework, "--precision", "bf16", "--device",
                                         "h200-sxm-141gb", "--concurrency", "32", "--count", "64", "--prompt", "64",
                                         "--new-tokens", "32", "-q", "--json", "-"});
        REQUIRE_MESSAGE(run.exit_code == 0, run.output);
        return nlohmann::json::parse(run.output)["rows"][0]["itl_p50_s"].get<double>();
    };
    const auto more_s = [&](const char* model) {
        return between_tokens_s("vllm@0.11", model) - between_tokens_s("vllm@0.14", model);
    };
    // 32 sequences: the host's time for each, and 13 us of the sampler on an H200 for 128,256 logits.
    const double host_s = 32 * (0.45 - 0.06) * 75.1e-6;
    CHECK(more_s("llama-3-8b") - host_s == approx(32 * 128256 * 500 / 4.8e12).epsilon(0.02));
    // GPT-OSS samples without top-p; in each of 24 layers the fused operator's floor on Hopper stands for those of two
    // products.
    CHECK(more_s("gpt-oss-20b") - host_s == approx(24 * (49.7e-6 - 2 * 0.75e-6)).epsilon(0.02));
}

TEST_CASE("--verify predicts a benchmark's run from its file, and compares each figure with the interval") {
    const TemporaryFolder folder;
    const auto verified = [&](const std::string& text, const std::string& workload) {
        const std::string path = folder.write("run.json", text);
        const auto json = served(on_h100({"--verify", path}), {});
        CHECK(json["workload"] == workload);
        std::map<std::string, nlohmann::json> figures;
        for (const auto& figure : json["verified"]) {
            figures[figure["figure"]] = figure;
            CHECK(figure["low"] < figure["predicted"]);
            CHECK(figure["predicted"] < figure["high"]);
            CHECK(figure["agrees"] == (figure["low"] <= figure["measured"] && figure["measured"] <= figure["high"]));
        }
        return figures;
    };
    // vllm bench serve --save-result, and what it adds with --save-detailed.
    const std::string counts = R"("completed":40,"total_input_tokens":20480,"total_output_tokens":2560,)";
    const auto vllm =
        verified(R"({"backend":"vllm","num_prompts":40,"request_rate":"inf","max_concurrency":8,)" + counts +
                     R"("output_throughput":700.0,"mean_ttft_ms":50.0,"median_ttft_ms":40.0,
                "p99_ttft_ms":3.0,"mean_tpot_ms":8.0,"mean_itl_ms":8.0,"p99_e2el_ms":900.0})",
                 "40 requests, 8 at a time, 512 tokens in and 64 out");
    CHECK(vllm.size() == 7);
    CHECK(vllm.at("ttft_p50_s")["measured"] == approx(0.04));
    CHECK(vllm.at("ttft_p99_s")["agrees"] == false);
    CHECK(vllm.at("tpot_mean_s")["predicted"] ==
          approx(served(on_h100({"--concurrency", "8", "--count", "40"}))["rows"][0]["tpot_mean_s"].get<double>()));
    CHECK(vllm.at("tokens_per_s")["measured"] == 700);
    const auto lengths_of_each = verified(
        R"({"request_rate":"inf","max_concurrency":null,"completed":2,"total_input_tokens":1100,"total_output_tokens":20,
            "input_lens":[100,1000],"output_lens":[10,10],"mean_ttft_ms":50.0})",
        "2 requests, 2 at a time, 550 tokens in and 10 out");
    CHECK(lengths_of_each.size() == 1);
    // SGLang's bench_serving: a line for each run; lengths vary.
    const auto sglang = verified(R"({"request_rate":1.0,"completed":1,"total_input_tokens":1,"mean_ttft_ms":1})"
                                 "\n"
                                 R"({"backend":"sglang","request_rate":Infinity,"max_concurrency":8,)" +
                                     counts +
                                     R"("random_range_ratio":0.5,"mean_e2e_latency_ms":600.0,"mean_ttft_ms":50.0})"
                                     "\n",
                                 "40 requests, 8 at a time, 512 tokens in and 64 out");
    CHECK(sglang.at("latency_mean_s")["measured"] == approx(0.6));
    CHECK(sglang.at("latency_mean_s")["predicted"] != vllm.at("ttft_p50_s")["predicted"]);
    // A rate, and a summary of InferenceX in seconds.
    verified(R"({"request_rate":4.0,"max_concurrency":100,)" + counts + R"("mean_ttft_ms":50.0})",
             "40 requests at 4 per second, 512 tokens in and 64 out");
    const auto summary =
        verified(R"({"hw":"h100","conc":4,"isl":1000,"osl":100,"tp":1,"mean_ttft":0.05,"median_tpot":0.008})",
                 "40 requests, 4 at a time, 900 tokens in and 90 out");
    CHECK(summary.at("tpot_p50_s")["measured"] == approx(0.008));
    // genai-perf and AIPerf.
    const auto aiperf = verified(
        R"({"request_count":{"unit":"requests","avg":50.0},"request_latency":{"unit":"ms","avg":700.0,"p90":800.0},
            "inter_token_latency":{"unit":"ms","avg":8.0},"output_token_throughput":{"avg":400.0},
            "output_sequence_length":{"avg":64.0},"input_sequence_length":{"avg":512.0},
            "input_config":{"loadgen":{"concurrency":4,"request_rate":null}}})",
        "50 requests, 4 at a time, 512 tokens in and 64 out");
    CHECK(aiperf.size() == 4);
    CHECK(aiperf.at("latency_p90_s")["measured"] == approx(0.8));
    const std::string path = folder.write("run.json", R"({"request_rate":4.0,)" + counts + R"("mean_ttft_ms":50.0})");
    const std::string table = serve(on_h100({"--verify", path}), {}).output;
    CHECK(table.find("agrees  measured  predicted") != std::string::npos);
    CHECK(table.find("ttft_mean_s") != std::string::npos);
    for (const char* text : {"[]", "{}", "7", R"({"mean_ttft_ms":1,"completed":1e300,"isl":1,"osl":1})",
                             R"({"mean_ttft_ms":"x","completed":2,"random_input_len":1,"random_output_len":1})"})
        CHECK(serve(on_h100({"--verify", folder.write("bad.json", text)}), {}).exit_code == 6);
    CHECK(serve(on_h100({"--verify", path, "--rate", "1"}), {}).exit_code == 2);
    CHECK(serve({"--verify", path, "--device", "l4,h100-sxm5-80gb"}, {}).exit_code == 2);
}
