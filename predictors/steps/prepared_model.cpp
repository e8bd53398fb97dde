#include <algorithm>
#include <cmath>

#include "ftax/work.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/ir/symbol_range.hpp"
#include "predictors/lowering/kernel_shapes.hpp"
#include "predictors/lowering/lowering.hpp"
#include "predictors/lowering/math_path.hpp"
#include "predictors/lowering/rewrites.hpp"
#include "predictors/steps/steps.hpp"

namespace ftax {
namespace {

/// Uncertainty of the host scale if the reference host stands in for a module's own CPU (stddev of the logarithm).
constexpr double foreign_host_log_stddev = 0.6;

/// What experts add to the spread of a model's device time.
constexpr double experts_log_stddev = 0.11;

/// Returns true if the graph reads a KV cache, judged by names of transformers' exports, or makes tokens of images.
bool has_token_cache(const Graph& graph) {
    return std::ranges::count(graph.expressions.symbols(), cached_tokens) > 0 || graph.format == "image encoder" ||
           std::ranges::any_of(graph.inputs, [&](TensorId input) {
               const std::string& name = graph.tensors[input].name;
               return name.find("past") != std::string::npos || name.find("cache") != std::string::npos;
           });
}

const Graph& checked(const Graph& graph, const FrameworkModel& model, const DeviceSpec& device, Precision precision) {
    check_operands(graph);
    const int major = device.compute_capability_major;  // 0: unknown, or a CPU
    if (major > 0 && major < model.traits.from_capability_major)
        throw_error(ErrorCode::usage, "{} needs compute capability {}.0: {} has {}.{}", model.name,
                    model.traits.from_capability_major, device.name, major, device.compute_capability_minor);
    const bool floats = name_of(precision).starts_with("fp8") || precision == Precision::nvfp4;
    if (model.traits.gemm.dot_products ? floats : precision_spec(precision).is_of_gguf())
        throw_error(ErrorCode::usage, "{} has no {}: quantised weights of llama.cpp are those of GGUF, such as q4_k_m",
                    model.name, name_of(precision));
    if (model.traits.serves_sequences && !has_token_cache(graph))
        throw_error(ErrorCode::usage, "{} serves generating language models only: {} has no KV cache", model.name,
                    graph.name);
    return graph;
}

/// Returns true for a product of two fp8 operands, as files and engines have them.
bool multiplies_fp8(const Graph& graph, const Op& op) {
    const auto is_fp8 = [&](TensorId id) {
        return id != no_tensor &&
               (graph.tensors[id].dtype == DType::f8e4m3 || graph.tensors[id].dtype == DType::f8e5m2);
    };
    return op.text(rewrites::operands) == "fp8" ||
           (op.is(OpKind::matmul, OpKind::linear, OpKind::conv) && is_fp8(op.inputs[0]) && is_fp8(op.inputs[1]));
}

/// Engine builders fall back to f16 on chips without int8 tensor cores. Source: NVIDIA's tables of BERT
/// (demo/BERT), V100: int8 takes 1.0 to 1.1 times as long as fp16.
PredictOptions executed(PredictOptions asked, const DeviceSpec& device, const FrameworkModel& model) {
    const bool without = !device.peak(MathPath::int8_tensor) && device.peak(MathPath::fp16_tensor);
    if (model.traits.engine && asked.precision == Precision::int8 && without) asked.precision = Precision::fp16;
    return asked;
}

}  // namespace

PreparedModel::PreparedModel(const Graph& source, DeviceProfile device_profile, FrameworkProfile framework_profile,
                             PredictOptions asked)
    : device(std::move(device_profile)),
      framework(std::move(framework_profile)),
      options(executed(asked, device.device, model_of(framework))),
      model(model_of(framework)),
      libraries(behaviour_of(model, options.libraries, device.device)),
      own_graph(optimised_graph(checked(source, model, device.device, asked.precision), model, device.device, options)),
      graph(own_graph ? *own_graph : source),
      guessed(guessed_operators(graph)),
      guesses(static_cast<std::size_t>(std::ranges::count(guessed, true))),
      schedule(lower(graph, device.device, options, model.traits)),
      first_equal(first_equal_kernels(graph, schedule)),
      first_equal_launch(first_equal_launches(graph, schedule, first_equal)),
      kernel_models(device_model(device)),
      costs(host_costs(framework, options, device.device)),
      run{"", deciding_version(model, options.libraries), options.precision, device.device.slug,
          device.device.architecture},
      weights(half_type_of_weights(source)),
      widened(options.precision != asked.precision),
      quantised_by_file(
          std::ranges::any_of(graph.ops, [](const Op& op) { return !op.text(rewrites::operands).empty(); })) {
    if (std::ranges::any_of(graph.ops, [&](const Op& op) { return multiplies_fp8(graph, op); }))
        require_arithmetic(device.device, precision_spec(Precision::fp8));
    if (std::ranges::any_of(graph.ops, [](const Op& op) { return op.integer(experts_attribute, 0) > 0; }))
        costs.device_relative_stddev = std::hypot(costs.device_relative_stddev, experts_log_stddev);
    if (has_foreign_host())
        costs.scale_relative_stddev = std::hypot(costs.scale_relative_stddev, foreign_host_log_stddev);
}

bool PreparedModel::has_foreign_host() const {
    return framework.host == "reference" && !device.device.host_cpu.empty();
}

TimelineOptions PreparedModel::timeline_options() const {
    if (is_cpu(device.device)) return {.blocking = true};
    return {.launch_latency_s = costs.launch_latency_s, .kernel_gap_s = costs.kernel_gap_s};
}

void PreparedModel::bind(const ShapeBindings& bindings, BoundShapes& bound) const {
    const auto seq = bindings.find("seq");
    if (!model.traits.skips_padding || options.padding <= 0 || seq == bindings.end())
        return ftax::bind(graph, bindings, bound);
    ShapeBindings shorter = bindings;
    shorter["seq"] = std::max<std::int64_t>(1, std::llround(static_cast<double>(seq->second) * (1 - options.padding)));
    ftax::bind(graph, shorter, bound);
}

}  // namespace ftax
