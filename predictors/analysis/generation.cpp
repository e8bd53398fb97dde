#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "ftax/generate.hpp"
#include "ftax/precision.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/symbol_range.hpp"
#include "predictors/analysis/crossings.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/lowering/rewrites.hpp"
#include "predictors/timeline/launch_costs.hpp"

namespace ftax {
namespace {

constexpr std::int64_t no_limit = std::int64_t{1} << 20;

bool has_symbol(const Graph& graph, std::string_view name) {
    return std::ranges::count(graph.expressions.symbols(), name) > 0;
}

constexpr std::array<std::string_view, 3> decoder_symbols{"batch", "seq", cached_tokens};

PredictOptions one_by_one(PredictOptions options) {
    options.synchronized = true;
    return options;
}

struct Step {
    double latency_s = 0, low_s = 0, high_s = 0, host_s = 0, device_s = 0;

    explicit Step(const Prediction& p)
        : latency_s(p.latency_s), low_s(p.low_s), high_s(p.high_s), host_s(p.host_s), device_s(p.device_s) {}
    Step() = default;
    void add(const Step& other, double weight) {
        latency_s += weight * other.latency_s;
        low_s += weight * other.low_s;
        high_s += weight * other.high_s;
        host_s += weight * other.host_s;
        device_s += weight * other.device_s;
    }
};

/// Sums f(first) + … + f(last) by Simpson's rule on intervals that a value in the middle confirms to be straight.
template <class F>
class Sum {
  public:
    explicit Sum(F f) : f_(std::move(f)) {}

    Step over(std::int64_t first, std::int64_t last) {
        Step total;
        if (first == last) {
            total.add(f_(first), 1);
        } else {
            add(first, f_(first), last, f_(last),
                static_cast<double>(last - first + 1) / static_cast<double>(last - first), 0, total);
        }
        return total;
    }

  private:
    /// `scale`: number of values per unit of length.
    void add(std::int64_t from, const Step& low, std::int64_t to, const Step& high, double scale, int depth,
             Step& total) {
        constexpr double straight = 0.002;
        constexpr int deepest = 4;  // 17 values
        const double length = static_cast<double>(to - from) * scale;
        const std::int64_t middle = from + (to - from) / 2;
        if (middle == from) {
            total.add(low, length / 2);
            total.add(high, length / 2);
            return;
        }
        const Step between = f_(middle);
        const double share = static_cast<double>(middle - from) / static_cast<double>(to - from);
        const double expected = low.latency_s + share * (high.latency_s - low.latency_s);
        if (depth == deepest || std::abs(between.latency_s - expected) <= straight * between.latency_s) {
            total.add(low, length / 6);
            total.add(between, 4 * length / 6);
            total.add(high, length / 6);
            return;
        }
        add(from, low, middle, between, scale, depth + 1, total);
        add(middle, between, to, high, scale, depth + 1, total);
    }

    F f_;
};

void check(const GenerationRequest& request, const Graph& graph) {
    const auto at_least_one = [](std::int64_t value, std::string_view what) {
        if (value < 1) throw_error(ErrorCode::usage, "{} must be at least 1, not {}", what, value);
    };
    at_least_one(request.batch, "the batch");
    at_least_one(request.prompt, "the length of the prompt");
    at_least_one(request.new_tokens, "the number of new tokens");
    if (request.images > 0 && !graph.image_encoder) throw_error(ErrorCode::usage, "no images: {}", graph.no_images);
    if (request.longest_prompt != 0 && request.longest_prompt < request.prompt)
        throw_error(ErrorCode::usage, "the longest prompt has {} tokens, less than the mean of {}",
                    request.longest_prompt, request.prompt);
}

void append_new(std::vector<std::string>& all, const std::vector<std::string>& warnings) {
    for (const std::string& warning : warnings)
        if (std::ranges::count(all, warning) == 0) all.push_back(warning);
}

}  // namespace

double vocabulary_of(const Graph& graph) {
    const Tensor& logits = graph.tensors[graph.outputs[0]];
    return static_cast<double>(graph.expressions.constant_value(logits.shape.back()).value_or(0));
}

double exchange_share(Predictor& predictor, const ShapeBindings& bindings) {
    std::vector<LaunchCosts> launches;
    const Prediction pass = predictor.predict(bindings, launches);
    const std::vector<Op>& ops = predictor.graph().ops;
    double exchange_s = 0;
    for (const LaunchCosts& launch : launches)
        if (launch.op < ops.size() && ops[launch.op].kind == OpKind::all_reduce) exchange_s += launch.device_s;
    return exchange_s / pass.device_s;
}

bool is_decoder(const Graph& graph) {
    return std::ranges::all_of(decoder_symbols, [&](std::string_view symbol) { return has_symbol(graph, symbol); });
}

Generator::Generator(const Graph& graph, DeviceProfile device, FrameworkProfile framework, PredictOptions options,
                     double memory_share)
    : predictor_(graph, std::move(device), std::move(framework), one_by_one(options)),
      model_(&model_of(predictor_.framework())),
      has_fixed_cache_(has_symbol(graph, "cache")),
      memory_share_(memory_share > 0 ? memory_share : 0.9) {
    // Of what is left, 1.5 MiB is for a token of a step, 2 for a captured sequence. Source: SGLang, server_args.py.
    if (memory_share == 0 && behaviour_of(*model_, predictor_.options().libraries).sizes_by_memory)
        memory_share_ = 1 - (512 + 1.5 * static_cast<double>(engine_limits().tokens) + 2 * 512) * (1 << 20) /
                                this->device().memory_bytes;
    for (const std::string_view symbol : decoder_symbols) {
        if (has_symbol(graph, symbol)) continue;
        throw_error(ErrorCode::model,
                    "{} generates no tokens: it has no dimension {} (a decoder's config.json gives one with "
                    "batch, seq and past)",
                    graph.name, symbol);
    }
    if (graph.image_encoder) {
        // Quantised checkpoints leave it in 16 bits.
        if (precision_spec(predictor_.precision()).quantizes_weights()) options.precision = Precision::fp16;
        encoder_ = std::make_unique<Predictor>(graph.image_encoder->graph, predictor_.device(), predictor_.framework(),
                                               one_by_one(options));
        encoder_bytes_ = encoder_->memory({{"batch", 1}}).weights_bytes;
    }
    if (auto steps = rewrites::without_encoder(graph)) {
        steps_graph_ = std::make_unique<const Graph>(std::move(*steps));
        steps_ = std::make_unique<Predictor>(*steps_graph_, predictor_.device(), predictor_.framework(),
                                             one_by_one(options));
    }
}

std::int64_t Generator::prompt_of(const GenerationRequest& request) const {
    const ImageEncoder* images = request.images > 0 ? predictor_.graph().image_encoder.get() : nullptr;
    return (images == nullptr ? 0 : request.images * images->tokens) +
           (model_->traits.skips_padding ? request.prompt : std::max(request.prompt, request.longest_prompt));
}

std::int64_t Generator::prompts_per_pass(const GenerationRequest& request) const {
    if (model_->serving.tokens_per_pass == 0) return request.batch;
    return std::clamp<std::int64_t>(model_->serving.tokens_per_pass / prompt_of(request), 1, request.batch);
}

std::int64_t Generator::longest_part(const GenerationRequest& request) const {
    const std::int64_t prompt = prompt_of(request);
    return model_->serving.splits_prompts ? std::min(prompt, model_->serving.tokens_per_pass) : prompt;
}

ShapeBindings Generator::pass(const GenerationRequest& request, std::int64_t batch, std::int64_t seq,
                              std::int64_t past) const {
    ShapeBindings bindings{{"batch", batch}, {"seq", seq}, {std::string(cached_tokens), past}};
    if (has_fixed_cache_) bindings["cache"] = prompt_of(request) + request.new_tokens;
    return bindings;
}

ShapeBindings Generator::middle_step(const GenerationRequest& request) const {
    return pass(request, request.batch, 1, prompt_of(request) + std::max<std::int64_t>(0, request.new_tokens - 2) / 2);
}

MemoryUse Generator::memory(const GenerationRequest& request) {
    check(request, predictor_.graph());
    const std::int64_t prompt = prompt_of(request);
    const std::int64_t part = longest_part(request);
    const MemoryUse start = predictor_.memory(pass(request, prompts_per_pass(request), part, prompt - part));
    MemoryUse use = decoder().memory(pass(request, request.batch, 1, prompt + request.new_tokens - 1));
    use.activations_bytes = std::max(use.activations_bytes, start.activations_bytes);
    use.weights_bytes = std::max(use.weights_bytes, start.weights_bytes) + encoder_bytes_;
    if (model_->traits.serves_sequences) {
        if (engine_activations_bytes_ == 0)
            engine_activations_bytes_ = serving_memory(engine_limits(), 1).activations_bytes;
        use.activations_bytes = std::max(use.activations_bytes, engine_activations_bytes_);
    }
    return use;
}

EngineLimits Generator::engine_limits() const {
    // Cards of 70 GiB and more but the A100. Source: vLLM, EngineArgs.get_batch_defaults: 8,192 tokens a step and 1,024
    // sequences, on others 2,048 and 256; TensorRT-LLM, max_num_tokens 8,192 and max_batch_size 2,048.
    const double gib = device().memory_bytes / (1 << 30);
    const bool large = gib >= 70 && !device().slug.starts_with("a100");
    const LibraryBehaviour libraries = behaviour_of(*model_, predictor_.options().libraries);
    if (libraries.sizes_by_memory) return {2048, gib > 160 ? 16384 : gib > 60 ? 8192 : gib > 35 ? 4096 : 2048};
    return {.sequences = large && libraries.schedules_ahead ? 1024 : 256,
            .tokens = model_->serving.splits_prompts       ? model_->serving.tokens_per_pass
                      : large || !libraries.chunks_prompts ? 8192
                                                           : 2048};
}

MemoryUse Generator::serving_memory(const EngineLimits& limits, std::int64_t length) {
    MemoryUse use = decoder().memory(pass({}, 1, 1, length - 1));
    const MemoryUse prompt = predictor_.memory(pass({}, 1, limits.tokens, 0));
    use.activations_bytes = std::max(use.activations_bytes, prompt.activations_bytes);
    use.weights_bytes = std::max(use.weights_bytes, prompt.weights_bytes) + encoder_bytes_;
    // An engine that measures its memory samples a token for each of its most sequences: logits in f32, these sorted
    // with their indices, probabilities and the result. Source: vLLM, gpu_model_runner.py (_dummy_sampler_run) and
    // topk_topp_sampler.py.
    constexpr double logit_bytes = 4 + (4 + 8) + 4 + 4;
    if (behaviour_of(*model_, predictor_.options().libraries).mixes_phases)
        use.activations_bytes +=
            logit_bytes * vocabulary_of(predictor_.graph()) * static_cast<double>(limits.sequences);
    return use;
}

double Generator::limit_bytes(const MemoryUse& use) const {
    // CUDA graphs are captured after the cache has got its share: of the context only the process's own counts. Source:
    // vLLM, gpu_worker.py (determine_available_memory).
    const double graphs_bytes = std::max(0.0, use.context_bytes - FrameworkModel{}.context_bytes);
    const double used_bytes = use.total_bytes() - use.cache_bytes - graphs_bytes;
    // Source: vLLM, gpu_memory_utilization; TensorRT-LLM, free_gpu_memory_fraction, a share of what the model leaves.
    if (!model_->traits.serves_sequences) return use.capacity_bytes;
    if (behaviour_of(*model_, predictor_.options().libraries).sizes_by_memory)  // a share of weights and cache alone
        return use.activations_bytes + use.context_bytes + memory_share_ * use.capacity_bytes;
    if (model_->traits.host_kind != HostKind::engine) return graphs_bytes + memory_share_ * use.capacity_bytes;
    return graphs_bytes + used_bytes + memory_share_ * (use.capacity_bytes - used_bytes);
}

std::string Generator::does_not_fit(const MemoryUse& use) const {
    return fmt::format("does not fit: {:.1f} GB of {:.1f} GB of memory{}", use.total_bytes() * 1e-9,
                       limit_bytes(use) * 1e-9, model_->traits.serves_sequences ? " that the engine uses" : "");
}

std::int64_t Generator::largest_batch(const GenerationRequest& request) {
    GenerationRequest one = request;
    one.batch = 1;
    if (!largest_batch_ || largest_batch_->first != one) largest_batch_ = {one, find_largest_batch(one)};
    return largest_batch_->second;
}

std::int64_t Generator::find_largest_batch(const GenerationRequest& request) {
    const auto fits_at = [&](std::int64_t batch) {
        GenerationRequest other = request;
        other.batch = batch;
        return fits(memory(other));
    };
    std::int64_t below = 0, above = 1;
    for (; above < no_limit && fits_at(above); above *= 16) below = above;
    while (above - below > 1) {
        const std::int64_t middle = below + (above - below) / 2;
        (fits_at(middle) ? below : above) = middle;
    }
    return below;
}

void Generator::run_at_once(const GenerationRequest& request, Generation& result) {
    const std::int64_t prompt = prompt_of(request);
    const std::int64_t together = prompts_per_pass(request);
    const std::int64_t part = longest_part(request);
    const std::int64_t whole_parts = prompt / part, rest = prompt % part;
    const auto read = [&](std::int64_t tokens, std::int64_t past) {
        return predictor_.predict(pass(request, together, tokens, past));
    };
    result.prompts_per_pass = together;
    result.prompt_tokens_per_pass = part;
    result.prefill_passes = (request.batch + together - 1) / together * (whole_parts + (rest > 0 ? 1 : 0));
    result.prefill = read(part, 0);
    const auto read_part = [&](std::int64_t i) { return Step(i == 0 ? result.prefill : read(part, i * part)); };
    Step prompts = Sum(read_part).over(0, whole_parts - 1);
    if (rest > 0) prompts.add(Step(read(rest, prompt - rest)), 1);
    if (request.images > 0) {
        result.image_tokens = predictor_.graph().image_encoder->tokens;
        prompts.add(Step(result.images.emplace(encode(together * request.images))), 1);
    }
    Step all;
    all.add(prompts, static_cast<double>(request.batch) / static_cast<double>(together));
    result.ttft_s = all.latency_s;

    const auto step = [&](std::int64_t past) { return decoder().predict(pass(request, request.batch, 1, past)); };
    const std::int64_t last = prompt + std::max<std::int64_t>(0, request.new_tokens - 2);
    result.first_tpot_s = step(prompt).latency_s;
    result.decode = decoder().predict(middle_step(request));
    const Prediction at_end = step(last);
    result.last_tpot_s = at_end.latency_s;
    // The pass with the longest context also covers the warnings of the other.
    append_new(result.warnings, request.new_tokens > 1 ? at_end.warnings : result.prefill.warnings);
    Sum sum([&](std::int64_t past) { return Step(step(past)); });
    const Step decoding = sum.over(prompt, last);
    const auto steps = static_cast<double>(last - prompt + 1);
    result.tpot_s = decoding.latency_s / steps;
    result.decode_host_s = decoding.host_s / steps;
    result.decode_device_s = decoding.device_s / steps;
    if (request.new_tokens > 1) all.add(decoding, 1);
    result.total_s = all.latency_s;
    result.low_s = all.low_s;
    result.high_s = all.high_s;
}

Generation Generator::generate(const GenerationRequest& request) {
    check(request, predictor_.graph());
    Generation result{.request = request, .memory = memory(request), .at_once = largest_batch(request)};
    result.fits = fits(result.memory);
    // A batch that does not fit is predicted as if it did, unless the framework queues sequences.
    const bool waits = model_->traits.serves_sequences && result.at_once > 0 && result.at_once < request.batch;
    GenerationRequest turn = request;
    if (waits) turn.batch = result.at_once;
    run_at_once(turn, result);
    if (waits) {
        result.waves = static_cast<double>(request.batch) / static_cast<double>(result.at_once);
        result.warnings.push_back(
            fmt::format("{} of {} sequences fit into the memory at once: processed in {:.1f} waves", result.at_once,
                        request.batch, result.waves));
        double factor = model_->serving.evicts_sequences ? result.waves : std::floor(result.waves);
        if (const std::int64_t rest = request.batch % result.at_once; !model_->serving.evicts_sequences && rest > 0) {
            Generation last_turn;
            turn.batch = rest;
            run_at_once(turn, last_turn);
            factor += last_turn.total_s / result.total_s;
        }
        for (double* seconds : {&result.total_s, &result.low_s, &result.high_s}) *seconds *= factor;
    } else if (!result.fits) {
        result.warnings.push_back(does_not_fit(result.memory));
    }
    result.tokens_per_s = static_cast<double>(request.batch) * static_cast<double>(request.new_tokens) / result.total_s;
    return result;
}

DecodeCrossover Generator::crossover(const GenerationRequest& request, const DecodeCrossover* known) {
    check(request, predictor_.graph());
    DecodeCrossover result;
    if (known != nullptr) {
        result = *known;
        result.contexts.clear();
    } else {
        const ShapeBindings one = pass(request, 1, 1, prompt_of(request));
        result.batches = find_crossovers(decoder(), one, result.largest_batch);
        result.batch_bound = decoder().predict(one).bound;
    }
    result.longest_context = no_limit;
    for (const SymbolRange& range : predictor_.graph().ranges)
        if (range.symbol == "past+seq") result.longest_context = std::min(result.longest_context, range.greatest - 1);
    // With a cache of fixed length all steps take equally long.
    const auto at = [&](std::int64_t past) { return decoder().predict(pass(request, request.batch, 1, past)); };
    result.context_bound = at(0).bound;
    // The search starts at 1, the contexts at 0.
    for (const Crossing& crossing : find_crossings(1, result.longest_context + 1, [&](std::int64_t length) {
             const Prediction step = at(length - 1);
             return TwoSides{step.host_s, step.device_s};
         })) {
        result.contexts.push_back({crossing.above - 1, crossing.host_decides_above});
    }
    return result;
}

}  // namespace ftax
