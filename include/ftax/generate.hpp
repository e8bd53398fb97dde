#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ftax/import.hpp"
#include "ftax/memory.hpp"
#include "ftax/predict.hpp"

namespace ftax {

struct LoweringTraits;  // predictors/lowering/lowering.hpp

/// Whether a graph has the symbols of a decoder: batch, seq and past.
[[nodiscard]] bool is_decoder(const Graph& graph);

/// A batch of prompts and how many tokens each of them gets.
struct GenerationRequest {
    std::int64_t batch = 1;
    std::int64_t prompt = 1;          ///< tokens of a prompt, on average
    std::int64_t longest_prompt = 0;  ///< 0: all are alike. Frameworks without nested tensors pad all to it
    std::int64_t new_tokens = 1;
    friend bool operator==(const GenerationRequest&, const GenerationRequest&) = default;
};

/// What a language model takes from a batch of prompts to their last tokens. Each pass waits for the one before, whose
/// token it reads.
struct Generation {
    GenerationRequest request;
    double ttft_s = 0;                              ///< until every sequence has its first token
    double tpot_s = 0;                              ///< mean time of a further token
    double first_tpot_s = 0;                        ///< of the first one behind the prompt
    double last_tpot_s = 0;                         ///< of the last one, with all others in the cache
    double decode_host_s = 0, decode_device_s = 0;  ///< their means over the steps
    double total_s = 0;
    double low_s = 0, high_s = 0;     ///< 90 % interval of total_s
    double tokens_per_s = 0;          ///< new tokens of all sequences over total_s
    std::int64_t prefill_passes = 1;  ///< the prompts are read in so many passes, the last token of each a result
    std::int64_t prompts_per_pass = 1, prompt_tokens_per_pass = 1;  ///< of one of them, at most
    Prediction prefill;                                             ///< of the first of them
    Prediction decode;         ///< of the step in the middle; without one (new_tokens is 1) that behind the prompt
    MemoryUse memory;          ///< of all sequences at their longest
    std::int64_t at_once = 0;  ///< sequences that fit into the memory; 0: not even one
    double waves = 1;          ///< turns in which a framework that schedules sequences serves a batch that exceeds them
    std::vector<std::string> warnings;

    /// That one board takes: prompts draw as `prefill` does, all steps as `decode`.
    [[nodiscard]] double energy_j() const { return prefill.power_w * ttft_s + decode.power_w * (total_s - ttft_s); }
};

/// Length of the context at which the host takes as long as the device.
struct ContextCrossover {
    std::int64_t tokens = 0;       ///< the first context, in cached tokens, on the other side
    bool gpu_waits_above = false;  ///< as Crossover has it
};

/// Where decoding changes between bound by the framework and bound by the device, in ascending order.
struct DecodeCrossover {
    std::vector<Crossover> batches;          ///< at the context of the prompt; empty: one side up to `largest_batch`
    std::vector<ContextCrossover> contexts;  ///< at the batch of the request; empty: one side up to `longest_context`
    Bound batch_bound = Bound::host, context_bound = Bound::host;  ///< the side at batch 1, at an empty context
    std::int64_t largest_batch = 4096;
    std::int64_t longest_context = 0;  ///< the model's own, or 1,048,576 tokens
};

/// Generates with a decoder whose graph has the symbols batch, seq and past (import.hpp, CacheOptions: a `cache` of
/// fixed length is as long as prompt and new tokens). Predictions are exact for a few contexts; between them the time
/// of a step is interpolated until another exact one confirms it (0.2 %).
class Generator {
  public:
    /// Keeps a reference to `graph`. Throws what Predictor throws, Error{model} for a graph without these symbols.
    Generator(const Graph& graph, DeviceProfile device, FrameworkProfile framework, PredictOptions options = {});

    /// Throws Error{usage} for a request with less than one sequence or token.
    [[nodiscard]] Generation generate(const GenerationRequest& request);
    /// `known`: what this generator found for another batch of the same prompts; its batch is not searched again.
    [[nodiscard]] DecodeCrossover crossover(const GenerationRequest& request, const DecodeCrossover* known = nullptr);
    /// The most sequences of that length that fit into the memory, whatever the batch; 0: not even one.
    [[nodiscard]] std::int64_t largest_batch(const GenerationRequest& request);
    [[nodiscard]] MemoryUse memory(const GenerationRequest& request);
    /// The memory of an engine that computes `tokens` in a step, with keys and values of one sequence of that length.
    [[nodiscard]] MemoryUse serving_memory(std::int64_t tokens, std::int64_t length);
    /// What engines leave alone is not among it.
    [[nodiscard]] double usable_bytes() const;

    [[nodiscard]] const DeviceSpec& device() const { return predictor_.device().device; }
    [[nodiscard]] Predictor& predictor() { return predictor_; }
    /// Of the passes behind the first, which find an encoder's results in the cache.
    [[nodiscard]] Predictor& decoder() { return steps_ ? *steps_ : predictor_; }
    /// The symbols of a pass: `seq` new tokens of each sequence behind `past` cached ones.
    [[nodiscard]] ShapeBindings pass(const GenerationRequest& request, std::int64_t batch, std::int64_t seq,
                                     std::int64_t past) const;

  private:
    /// Fills in what does not depend on turns, for the batch of the request.
    void run_at_once(const GenerationRequest& request, Generation& result);
    [[nodiscard]] std::int64_t find_largest_batch(const GenerationRequest& request);
    /// Tokens of a prompt that are computed: the mean, or the longest where shorter ones are padded.
    [[nodiscard]] std::int64_t prompt_of(const GenerationRequest& request) const;
    [[nodiscard]] std::int64_t prompts_per_pass(const GenerationRequest& request) const;
    /// Tokens of one of those that a pass takes in.
    [[nodiscard]] std::int64_t longest_part(const GenerationRequest& request) const;

    Predictor predictor_;
    std::unique_ptr<const Graph> steps_graph_;  ///< where it is not the whole graph
    std::unique_ptr<Predictor> steps_;
    const LoweringTraits* traits_;  ///< of the framework
    bool has_fixed_cache_;
    std::optional<std::pair<GenerationRequest, std::int64_t>> largest_batch_;  ///< the last one found
};

}  // namespace ftax
