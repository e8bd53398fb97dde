#include "predictors/lowering/type_assignment.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "graphs/ir/operands.hpp"
#include "graphs/ir/rewriting/graph_edits.hpp"
#include "predictors/lowering/library_behaviour.hpp"
#include "predictors/lowering/math_path.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

static bool has_text(const Graph& graph, std::string_view attribute) {
    return std::ranges::any_of(graph.ops, [&](const Op& op) { return !op.text(attribute).empty(); });
}

TypeAssignment::TypeAssignment(const Graph& graph, const DeviceSpec& device, const PredictOptions& options,
                               const LoweringTraits& traits)
    : graph_(graph),
      device_(device),
      options_(options),
      precision_(precision_spec(options.precision)),
      traits_(traits),
      is_quantized_by_file_(has_text(graph, rewrites::operands)),
      names_quantized_layers_(has_text(graph, weights_attribute)),
      has_narrow_activations_((traits.engine || traits.calls_engines) &&
                              (options.precision == Precision::int8 || options.precision == Precision::fp8) &&
                              !is_quantized_by_file_) {
    assign_storage();
}

void TypeAssignment::assign_storage() {
    const DType storage = storage_type(options_.precision);
    // A half-precision file names the float32 tensors that it converts to; a float32 file has one type for all.
    const bool mixed = !traits_.engine && half_type_of_weights(graph_) != DType::f32;
    storage_.reserve(graph_.tensors.size());
    for (const Tensor& tensor : graph_.tensors) {
        const bool replaced = is_float(tensor.dtype) && tensor.dtype != DType::f64 && bits_of(tensor.dtype) >= 16 &&
                              !(mixed && tensor.dtype == DType::f32);
        const bool wide = traits_.wide_activations && tensor.role == TensorRole::activation;
        storage_.push_back(!replaced ? tensor.dtype : wide ? DType::f32 : storage);
    }
    if (precision_.autocast) {
        autocast_policies_ = autocast::policies(graph_);
        autocast::assign_storage(graph_, autocast_policies_, storage_);
    }
    if (has_narrow_activations_) store_narrow_activations();
    // Generated kernels exchange these in f32.
    for (const Op& op : graph_.ops)
        for (const std::int64_t output : op.integers(rewrites::full_outputs))
            storage_[op.outputs[static_cast<std::size_t>(output)]] = DType::f32;
}

bool TypeAssignment::has_narrow_kernel(const Op& op) const {
    using enum OpKind;
    if (op.is(layer_norm, pointwise)) return true;
    if (op.is(batch_norm, pool, global_pool, concat, copy, resize)) return options_.precision == Precision::int8;
    if (op.is(attention)) return fused_attention(op, precision_.activation) != nullptr;
    return is_quantized(op);
}

void TypeAssignment::store_narrow_activations() {
    std::vector<bool> written(graph_.tensors.size()), narrow(graph_.tensors.size(), true);
    // The location of eliminated concatenations has no producer, and nothing reads it.
    for (std::size_t i = 0; i < written.size(); ++i) written[i] = graph_.tensors[i].role == TensorRole::activation;
    for (const TensorId output : graph_.outputs) narrow[output] = false;
    for (const Op& op : graph_.ops) {
        const bool on = is_view(op) ? written[op.inputs[0]] : has_narrow_kernel(op);
        for (const TensorId output : op.outputs) written[output] = on;
    }
    for (auto op = graph_.ops.rbegin(); op != graph_.ops.rend(); ++op) {
        const auto is_narrow = [&](TensorId output) { return narrow[output]; };
        const bool on = is_view(*op) ? std::ranges::all_of(op->outputs, is_narrow) : has_narrow_kernel(*op);
        for (const TensorId input : present(op->inputs)) narrow[input] = narrow[input] && on;
    }
    for (std::size_t i = 0; i < storage_.size(); ++i)
        if (written[i] && narrow[i] && bits_of(storage_[i]) == 16) storage_[i] = precision_.activation;
}

Precision TypeAssignment::operands_of(const Op& op) const {
    if (const std::string_view name = op.text(rewrites::operands); !name.empty()) {
        const Precision stated = name == "fp8" ? Precision::fp8 : Precision::int8;
        return device_.peak(precision_spec(stated).path) ? stated : Precision::fp32;
    }
    // ggml-org's files of checkpoints with narrow experts have the other layers in q8_0.
    const bool rest_of_gguf = precision_.is_of_gguf() && names_quantized_layers_ && op.kind == OpKind::linear;
    if (rest_of_gguf && op.text(weights_attribute).empty()) return Precision::q8_0;
    // A head has 6 bits in files with fewer, as has a table of embeddings that is one. Source: llama-quant.cpp.
    const bool of_six_bits = precision_.is_of_gguf() && options_.precision != Precision::q8_0 && is_head(op);
    if (!is_quantized(op)) return Precision::fp32;
    if (of_six_bits) return Precision::q6_k;
    const bool widens = behaviour_of(options_.libraries, traits_.library, device_).widens_in_marlin;
    if (widens && op.integer("mxfp4", 0) != 0) return Precision::w4a16;
    const auto own = precision_from_name(op.text(rest_attribute));
    if (!own || bits_of(precision_spec(*own).weight) <= bits_of(precision_.weight)) return options_.precision;
    return device_.peak(precision_spec(*own).path) ? *own : Precision::w8a16;
}

bool TypeAssignment::is_head(const Op& op) const {
    return std::ranges::count(graph_.outputs, op.outputs[0]) > 0 || op.module.ends_with("lm_head");
}

bool TypeAssignment::is_quantized(const Op& op) const {
    if (!precision_.quantizes_weights() || op.inputs.size() < 2 || is_quantized_by_file_) return false;
    if (names_quantized_layers_ && op.text(weights_attribute).empty()) return false;
    if (op.integer(experts_attribute, 0) > 0) return true;
    if (op.kind == OpKind::conv || op.kind == OpKind::conv_transpose)
        return has_narrow_activations_ && options_.precision == Precision::int8 &&
               graph_.tensors[op.inputs[1]].role == TensorRole::weight;
    const bool layer = op.kind == OpKind::linear || op.kind == OpKind::matmul;
    if (!layer || graph_.tensors[op.inputs[1]].role != TensorRole::weight) return false;
    const std::string_view module = std::string_view(op.module).substr(op.module.rfind('.') + 1);
    static constexpr std::array<std::string_view, 3> kept{"gate", "router", "shared_expert_gate"};
    return is_head(op) ? precision_.is_of_gguf() : std::ranges::count(kept, module) == 0;
}

const FusedAttention* TypeAssignment::fused_attention(const Op& op, DType type) const {
    const Tensor& q = graph_.tensors[op.inputs[0]];
    const auto head = q.shape.empty() ? std::nullopt : graph_.expressions.constant_value(q.shape.back());
    const int chip = 10 * device_.compute_capability_major + device_.compute_capability_minor;
    const int version = options_.libraries.tensorrt;
    if (!head) return nullptr;
    const auto exists = [&](const FusedAttention& k) {
        return k.type == type && version >= k.from_version && (k.below_version == 0 || version < k.below_version) &&
               chip >= k.least_chip && (k.greatest_chip == 0 || chip <= k.greatest_chip) && *head >= k.least_head &&
               *head <= k.greatest_head && *head % k.step == 0;
    };
    const auto found = std::find_if(traits_.fused_attention.begin(), traits_.fused_attention.end(), exists);
    return found == traits_.fused_attention.end() ? nullptr : &*found;
}

}  // namespace ftax
