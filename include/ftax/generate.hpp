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

/// Returns true if a graph has the symbols of a decoder: batch, seq and past.
[[nodiscard]] bool is_decoder(const Graph& graph);
/// Returns the number of logits per token of a decoder, on one card.
[[nodiscard]] double vocabulary_of(const Graph& graph);

/// Returns the share of a pass's device time spent in all-reduce.
[[nodiscard]] double exchange_share(Predictor& predictor, const ShapeBindings& bindings);

/// A batch of prompts and the number of tokens to generate for each.
struct GenerationRequest {
    std::int64_t batch = 1;
    std::int64_t prompt = 1;          ///< tokens of a prompt, on average
    std::int64_t longest_prompt = 0;  ///< 0: equal lengths. Frameworks without nested tensors pad all prompts to it
    std::int64_t new_tokens = 1;
    std::int64_t images = 0;  ///< per prompt, whose tokens come on top of `prompt`; of ImportOptions::image_size
    friend bool operator==(const GenerationRequest&, const GenerationRequest&) = default;
};

/// The largest step for which an engine reserves memory.
struct EngineLimits {
    std::int64_t sequences = 256, tokens = 8192;
};

/// Predicted time and memory of a generation, from a batch of prompts to the last token. Each pass reads the token of
/// the previous pass and waits for it.
struct Generation {
    GenerationRequest request;
    double ttft_s = 0;                              ///< time until every sequence has its first token
    double tpot_s = 0;                              ///< mean time per output token after the first
    double first_tpot_s = 0;                        ///< time of the first decoding step
    double last_tpot_s = 0;                         ///< time of the last decoding step, with all other tokens cached
    double decode_host_s = 0, decode_device_s = 0;  ///< means over the decoding steps
    double total_s = 0;
    double low_s = 0, high_s = 0;                                   ///< 90 % interval of total_s
    double tokens_per_s = 0;                                        ///< new tokens of all sequences over total_s
    std::int64_t prefill_passes = 1;                                ///< number of passes that process the prompts
    std::int64_t prompts_per_pass = 1, prompt_tokens_per_pass = 1;  ///< largest values of a pass
    std::optional<Prediction> images;                               ///< the encoder's pass over those of one pass
    std::int64_t image_tokens = 0;                                  ///< of a prompt, for each of its images
    Prediction prefill;                                             ///< the first such pass
    Prediction decode;         ///< the middle decoding step; if new_tokens is 1, the step after the prompt
    MemoryUse memory;          ///< with all sequences at full length
    bool fits = true;          ///< memory.total_bytes() fits into the memory that the framework uses
    std::int64_t at_once = 0;  ///< number of sequences that fit into memory
    double waves = 1;          ///< rounds in which a serving framework processes a batch larger than at_once
    std::vector<std::string> warnings;

    /// Returns the energy of one board: prompts at the power of `prefill`, all steps at the power of `decode`.
    [[nodiscard]] double energy_j() const { return prefill.power_w * ttft_s + decode.power_w * (total_s - ttft_s); }
};

/// Context length at which host time equals device time.
struct ContextCrossover {
    std::int64_t tokens = 0;       ///< first context length beyond the crossover, in cached tokens
    bool gpu_waits_above = false;  ///< see Crossover
};

/// Points at which decoding changes between framework-bound and device-bound, in ascending order.
struct DecodeCrossover {
    std::vector<Crossover> batches;          ///< at the prompt's context; empty: no change up to `largest_batch`
    std::vector<ContextCrossover> contexts;  ///< at the request's batch; empty: no change up to `longest_context`
    Bound batch_bound = Bound::host, context_bound = Bound::host;  ///< bounds at batch 1 and at an empty context
    std::int64_t largest_batch = 4096;
    std::int64_t longest_context = 0;  ///< the model's limit, or 1,048,576 tokens
};

/// Predicts generation with a decoder whose graph has the symbols batch, seq and past (import.hpp, CacheOptions: a
/// `cache` of fixed length holds the prompt and the new tokens). A few contexts are predicted exactly; step times
/// between them are interpolated, with exact predictions added until the interpolation is confirmed to 0.2 %.
class Generator {
  public:
    /// Keeps a reference to `graph`. `memory_share` is the share of the device's memory that a serving engine uses; 0
    /// selects its default. Throws what Predictor throws, and Error{model} for a graph without these symbols.
    Generator(const Graph& graph, DeviceProfile device, FrameworkProfile framework, PredictOptions options = {},
              double memory_share = 0);

    /// Throws Error{usage} for a request with fewer than one sequence or token.
    [[nodiscard]] Generation generate(const GenerationRequest& request);
    /// `known`: this generator's result for another batch of the same prompts; its batch crossovers are reused.
    [[nodiscard]] DecodeCrossover crossover(const GenerationRequest& request, const DecodeCrossover* known = nullptr);
    /// Returns the largest number of such sequences that fit into memory, whatever the request's batch; 0 if none fits.
    [[nodiscard]] std::int64_t largest_batch(const GenerationRequest& request);
    [[nodiscard]] MemoryUse memory(const GenerationRequest& request);
    /// Predicts the encoder's pass over so many images.
    [[nodiscard]] Prediction encode(std::int64_t images) { return encoder_->predict({{"batch", images}}); }
    /// Returns the memory of an engine with these limits that caches one sequence of the given length.
    [[nodiscard]] MemoryUse serving_memory(const EngineLimits& limits, std::int64_t length);
    /// Returns the defaults of the engine on this device.
    [[nodiscard]] EngineLimits engine_limits() const;
    /// Returns the largest total that fits: the device's capacity, or the memory that an engine uses of it.
    [[nodiscard]] double limit_bytes(const MemoryUse& use) const;
    [[nodiscard]] bool fits(const MemoryUse& use) const { return use.total_bytes() <= limit_bytes(use); }
    /// Returns "does not fit: 78.2 GB of 77.3 GB of memory that the engine uses".
    [[nodiscard]] std::string does_not_fit(const MemoryUse& use) const;

    [[nodiscard]] const DeviceSpec& device() const { return predictor_.device().device; }
    [[nodiscard]] Predictor& predictor() { return predictor_; }
    /// Returns the predictor of the passes after the first, which read an encoder's results from the cache.
    [[nodiscard]] Predictor& decoder() { return steps_ ? *steps_ : predictor_; }
    /// Returns the bindings of a pass: `seq` new tokens of each sequence after `past` cached ones.
    [[nodiscard]] ShapeBindings pass(const GenerationRequest& request, std::int64_t batch, std::int64_t seq,
                                     std::int64_t past) const;
    /// Returns the bindings of the decoding step in the middle, Generation::decode.
    [[nodiscard]] ShapeBindings middle_step(const GenerationRequest& request) const;

  private:
    /// Fills in the results that do not depend on rounds, for the batch of the request.
    void run_at_once(const GenerationRequest& request, Generation& result);
    [[nodiscard]] std::int64_t find_largest_batch(const GenerationRequest& request);
    /// Returns the computed tokens per prompt: the mean, or the longest if shorter ones are padded, with its images.
    [[nodiscard]] std::int64_t prompt_of(const GenerationRequest& request) const;
    [[nodiscard]] std::int64_t prompts_per_pass(const GenerationRequest& request) const;
    /// Returns the largest number of tokens per prompt in one pass.
    [[nodiscard]] std::int64_t longest_part(const GenerationRequest& request) const;

    Predictor predictor_;
    std::unique_ptr<const Graph> steps_graph_;  ///< null if decoding uses the whole graph
    std::unique_ptr<Predictor> steps_;
    std::unique_ptr<Predictor> encoder_;  ///< of images; null if the model has none
    double encoder_bytes_ = 0;            ///< its weights, which engines load whether or not prompts have images
    const FrameworkModel* model_;
    bool has_fixed_cache_;
    double memory_share_;
    double engine_activations_bytes_ = 0;  ///< activations of the engine's largest step; 0 if unknown
    std::optional<std::pair<GenerationRequest, std::int64_t>> largest_batch_;  ///< most recent result
};

}  // namespace ftax
