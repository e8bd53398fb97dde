#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/json_document.hpp"
#include "src/scenario/serving.hpp"

namespace ftax::scenario {
namespace {

/// A positive number at the first of these paths that has one; 0 where none has.
double number(const nlohmann::json& json, std::initializer_list<std::string> paths) {
    for (const std::string& path : paths) {
        const nlohmann::json::json_pointer at("/" + path);
        if (!json.contains(at) || !json[at].is_number()) continue;
        if (const auto found = json[at].get<double>(); found > 0 && found <= most_tokens) return found;
    }
    return 0;
}

}  // namespace

// Sources: vllm/benchmarks/serve.py; sglang/bench_serving.py; InferenceX, utils/process_result.py: summaries in
// seconds, whose scripts send ten requests a client, with 0.8 to 1 of the lengths; AIPerf, profile_export_aiperf.json.
std::pair<report::MeasuredFigures, std::vector<ServingRequest>> read_benchmark_run(const std::string& path,
                                                                                   ServingArguments& arguments) {
    std::string text = quote_non_finite(read_file(path));
    if (const std::size_t last = text.rfind("\n{"); last != std::string::npos) text.erase(0, last + 1);
    const nlohmann::json json = parse_json(text, path);
    const bool is_summary = number(json, {"isl"}) > 0;
    const double least = is_summary ? 0.8 : number(json, {"random_range_ratio"});
    const auto tokens = [&](const char* total, std::initializer_list<std::string> means) {
        const double mean = number(json, {total}) / std::max(1.0, number(json, {"completed"}));
        return std::llround(mean > 0 ? mean : number(json, means) * (is_summary ? (1 + least) / 2 : 1));
    };
    const auto asked = [&](const std::string& name, const std::string& flat) {
        return number(json, {flat, "input_config/" + name, "input_config/loadgen/" + name,
                             "input_config/perf_analyzer/stimulus/" + name});
    };
    arguments.prompt = tokens("total_input_tokens", {"input_sequence_length/avg", "random_input_len", "isl"});
    arguments.new_tokens = tokens("total_output_tokens", {"output_sequence_length/avg", "random_output_len", "osl"});
    arguments.rate = asked("request_rate", "request_rate");
    const std::int64_t clients =
        std::llround(std::max(asked("concurrency", "max_concurrency"), number(json, {"conc"})));
    report::MeasuredFigures figures;
    std::vector<ServingRequest> requests;
    const auto length = [&](const char* list) {
        return std::llround(number(json, {fmt::format("{}/{}", list, requests.size())}));
    };
    while (length("input_lens") > 0)
        requests.push_back({.prompt = length("input_lens"), .output = std::max(1LL, length("output_lens"))});
    arguments.count = !requests.empty() ? std::ssize(requests)
                      : is_summary      ? 10 * clients
                                        : std::llround(number(json, {"completed", "request_count/avg"}));
    arguments.engine.concurrency = arguments.rate > 0 ? 0 : clients > 0 ? clients : arguments.count;  // all at once
    // Spread evenly from that share of the largest on.
    if (least > 0 && least < 1 && arguments.spread < 0) arguments.spread = (1 - least) / (1 + least) / std::sqrt(3.0);
    for (const char* times : {"ttft ttft time_to_first_token", "tpot tpot inter_token_latency", "itl itl",
                              "latency e2el e2e_latency request_latency"}) {
        for (const char* statistics : {"mean mean avg", "p50 median p50", "p90 p90 p90", "p99 p99 p99"}) {
            const auto time = words_of(times), statistic = words_of(statistics);
            double seconds = 0;
            for (std::size_t i = 1; i < time.size() && seconds == 0; ++i) {
                const std::string flat = fmt::format("{}_{}", statistic[1], time[i]);
                seconds = 1e-3 * number(json, {flat + "_ms", fmt::format("{}/{}", time[i], statistic[2])});
                if (seconds == 0) seconds = number(json, {flat});
            }
            if (seconds > 0) figures.emplace_back(fmt::format("{}_{}_s", time[0], statistic[0]), seconds);
        }
    }
    if (const double rate = number(json, {"output_throughput", "output_token_throughput/avg"}); rate > 0)
        figures.emplace_back("tokens_per_s", rate);
    if (figures.empty() || std::min({arguments.prompt, arguments.new_tokens, arguments.count}) < 1 ||
        arguments.count > 10'000'000)
        throw_error(ErrorCode::profile, "{}: no result of a benchmark with times, tokens and requests", path);
    return {std::move(figures), std::move(requests)};
}

}  // namespace ftax::scenario
