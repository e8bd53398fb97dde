#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/report/serving_report.hpp"
#include "src/scenario/combinations.hpp"
#include "src/scenario/scenario.hpp"

/// What `ftax serve` and Python's ftax.serve share.
namespace ftax::scenario {

constexpr std::int64_t most_parts = 1024;  ///< of cards and servers; no more than 64 cards share layers

/// Alike servers, each a pipeline of `stages`; a stage has groups of `data`, each with requests of its own, of `tensor`
/// cards that share each layer. Experts are in `experts` parts of all cards of a stage.
struct Layout {
    std::int64_t servers = 1, tensor = 1, data = 1, experts = 1, stages = 1;

    auto operator<=>(const Layout&) const = default;
    [[nodiscard]] std::int64_t cards() const { return tensor * data * stages; }
    [[nodiscard]] std::string text() const;  ///< "2 x tp 4 dp 2 ep 8"
};

struct ServingArguments {
    ModelArguments model;
    RunArguments run;  ///< device, framework and precision are lists
    ChoiceArguments choice;
    double rate = 0;  ///< requests per second
    /// Clients and the engine's options; most sequences and tokens of 0: the engine's own. Acceptance: order of
    /// magnitude of EAGLE-3 and MTP heads on chat.
    SchedulerOptions engine{.max_sequences = 0, .max_tokens = 0, .acceptance = 0.7};
    std::string requests;       ///< a CSV file with arrival_s, prompt and output
    std::string verify;         ///< the result of a benchmark, whose requests these are
    std::int64_t count = 1000;  ///< of requests that are drawn
    std::int64_t prompt = 0, new_tokens = 0;
    /// Coefficient of variation of both; below 0: 0, but 0.2 at a fixed concurrency under engines whose steps mix
    /// prompts and decoding, where clients that begin together and ask for texts of one length would stay in step.
    double spread = -1;
    std::int64_t seed = 1;
    double kept_share = 0.99;
    std::int64_t cards = 0;             ///< over which every layout is tried; 0: the one that the others give
    Layout layout{};                    ///< of each server; tensor is that of a combination
    Layout readers{.servers = 0};       ///< of the servers that `prefill` names
    std::string prefill;                ///< servers that only read prompts: "servers=2,tp=4"; empty: none
    std::string draft;                  ///< "head", "ngram" or a model; empty: "head"
    std::int64_t captured_tokens = -1;  ///< of a step with prompts, in graphs between attention; -1: the engine's
    bool find_rate = false;
    bool rates = false;          ///< latency is also wanted at other rates
    std::int64_t max_batch = 8;  ///< of models that do not generate
    double max_delay_s = 0;
};

/// Reads requests. Throws Error{profile} naming file, line and column.
[[nodiscard]] std::vector<ServingRequest> read_requests(const std::string& path);

/// Reads the result of `vllm bench serve --save-result`, of SGLang's bench_serving (of several lines the last), of
/// InferenceX, of genai-perf or of AIPerf, and lets `arguments` send requests as that client did; the second has their
/// lengths, where the file has them. Throws Error{profile}.
[[nodiscard]] std::pair<report::MeasuredFigures, std::vector<ServingRequest>> read_benchmark_run(
    const std::string& path, ServingArguments& arguments);

/// Serves the requests with each combination, sorted by cost with those that keep the level first. A combination that
/// cannot run is a row with the reason. Throws Error{usage} for what the arguments misspell and where none can run.
[[nodiscard]] report::ServingReport serve(const ServingArguments& arguments);

}  // namespace ftax::scenario
