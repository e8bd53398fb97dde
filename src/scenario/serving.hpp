#pragma once

#include <cstdint>
#include <string>

#include "src/report/serving_report.hpp"
#include "src/scenario/combinations.hpp"
#include "src/scenario/scenario.hpp"

/// What `ftax serve` and Python's ftax.serve share.
namespace ftax::scenario {

struct ServingArguments {
    ModelArguments model;
    RunArguments run;  ///< device, framework and precision are lists
    ChoiceArguments choice;
    double rate = 0;               ///< requests per second
    std::int64_t concurrency = 0;  ///< requests that clients keep outstanding
    std::string requests;          ///< a CSV file with arrival_s, prompt and output
    std::int64_t count = 1000;     ///< of requests that are drawn
    std::int64_t prompt = 0, new_tokens = 0;
    /// Coefficient of variation of both; below 0: 0, but 0.2 at a fixed concurrency under engines whose steps mix
    /// prompts and decoding, where clients that begin together and ask for texts of one length would stay in step.
    double spread = -1;
    std::int64_t seed = 1;
    double kept_share = 0.99;
    std::int64_t data_parallel = 1;    ///< groups of --tp cards, each with requests of its own
    std::int64_t expert_parallel = 1;  ///< parts of all of a stage's cards with experts of their own
    std::int64_t stages = 1;           ///< of a pipeline
    std::int64_t replicas = 1;         ///< alike servers
    std::string prefill;               ///< servers that only read prompts: "servers=2,tp=4"; empty: none
    double transfer_bytes_per_s = 0;   ///< from each of their cards; 0: over the link in a machine, else a NIC
    std::int64_t draft_tokens = 0;
    double acceptance = 0.7;  ///< order of magnitude: EAGLE-3 and MTP heads on chat
    std::string draft;        ///< "head", "ngram" or a model; empty: "head"
    std::int64_t poll_steps = 1;
    std::int64_t gather_steps = 0, balance_steps = 0;
    double gather_share = 1;
    std::int64_t captured_tokens = -1;  ///< of a step with prompts, in graphs between attention; -1: the engine's
    bool find_rate = false;
    bool rates = false;                              ///< latency is also wanted at other rates
    std::int64_t max_sequences = 0, max_tokens = 0;  ///< 0: the engine's own
    double shared_prefix = 0;
    std::int64_t max_batch = 8;  ///< of models that do not generate
    double max_delay_s = 0;
};

/// Reads requests. Throws Error{profile} naming file, line and column.
[[nodiscard]] std::vector<ServingRequest> read_requests(const std::string& path);

/// Serves the requests with each combination, sorted by cost with those that keep the level first. A combination that
/// cannot run is a row with the reason. Throws Error{usage} for what the arguments misspell and where none can run.
[[nodiscard]] report::ServingReport serve(const ServingArguments& arguments);

}  // namespace ftax::scenario
