#include "calibration/bench/libtorch/network.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "ftax/error.hpp"

namespace ftax::bench {
namespace {

using at::Tensor;
using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

[[noreturn]] void cannot_run(const Op& op, std::string_view what = {}) {
    throw Error(ErrorCode::usage, "LibTorch: cannot run " + std::string(name_of(op.kind)) + " " +
                                      std::string(what.empty() ? op.source : what));
}

std::vector<std::int64_t> integers(const Op& op, std::string_view attribute) {
    const auto values = op.integers(attribute);
    return {values.begin(), values.end()};
}

bool in_place(const Op& op) {
    return op.source.ends_with('_');
}

#define FTAX_UNARY(name) std::pair(#name, Unary([](const Tensor& x) { return at::name(x); }))
#define FTAX_BINARY(name, call) std::pair(name, Binary([](const Tensor& x, const Tensor& y) { return at::call(x, y); }))

/// Those that end in an underscore write into their argument.
const std::map<std::string_view, Unary>& unary_functions() {
    static const std::map<std::string_view, Unary> functions{
        FTAX_UNARY(relu),
        FTAX_UNARY(gelu),
        FTAX_UNARY(tanh),
        FTAX_UNARY(sigmoid),
        FTAX_UNARY(silu),
        FTAX_UNARY(hardswish),
        FTAX_UNARY(hardsigmoid),
        FTAX_UNARY(exp),
        FTAX_UNARY(erf),
        FTAX_UNARY(sqrt),
        FTAX_UNARY(rsqrt),
        FTAX_UNARY(neg),
        std::pair("clamp", Unary([](const Tensor& x) { return at::clamp(x, 0.0, 6.0); })),
        std::pair("not", Unary([](const Tensor& x) { return at::logical_not(x); })),
        std::pair("relu_", Unary([](const Tensor& x) { return x.relu_(); })),
        std::pair("clamp_", Unary([](const Tensor& x) { return x.clamp_(0.0, 6.0); })),
        std::pair("sigmoid_", Unary([](const Tensor& x) { return x.sigmoid_(); }))};
    return functions;
}

const std::map<std::string_view, Binary>& binary_functions() {
    static const std::map<std::string_view, Binary> functions{
        FTAX_BINARY("add", add),      FTAX_BINARY("sub", sub),     FTAX_BINARY("mul", mul),
        FTAX_BINARY("div", div),      FTAX_BINARY("pow", pow),     FTAX_BINARY("equal", eq),
        FTAX_BINARY("not_equal", ne), FTAX_BINARY("max", maximum), FTAX_BINARY("min", minimum)};
    return functions;
}

}  // namespace

Network::Network(const Graph& graph, const ShapeBindings& bindings, Precision precision, c10::Device device,
                 int weight_sets)
    : graph_(graph),
      bound_(bind(graph, bindings)),
      precision_(precision),
      device_(device),
      values_(graph.tensors.size()) {
    for (const Op& op : graph.ops) {
        if (op.outputs.size() != 1) cannot_run(op, "with several outputs");
        steps_.push_back({call_for(op), op.outputs[0], {}});
    }
    std::vector<bool> kept(graph.tensors.size(), false);
    for (TensorId id = 0; id < graph.tensors.size(); ++id) {
        const TensorRole role = graph.tensors[id].role;
        if (role == TensorRole::activation) continue;
        kept[id] = role != TensorRole::input;
        const int sets = role == TensorRole::weight ? weight_sets : 1;
        Fixed& fixed = fixed_.emplace_back(Fixed{id, {}});
        for (int i = 0; i < sets; ++i) fixed.sets.push_back(filled(id));
    }
    for (const TensorId id : graph.outputs) kept[id] = true;
    for (std::size_t i = graph.ops.size(); i-- > 0;) {
        for (const TensorId id : graph.ops[i].inputs) {
            if (id == no_tensor || kept[id]) continue;
            kept[id] = true;
            steps_[i].dead.push_back(id);
        }
    }
}

void Network::run() {
    for (const Fixed& fixed : fixed_) values_[fixed.slot] = fixed.sets[next_set_ % fixed.sets.size()];
    ++next_set_;
    for (const Step& step : steps_) {
        values_[step.output] = step.call(values_);
        for (const TensorId id : step.dead) values_[id].reset();
    }
}

std::vector<std::int64_t> Network::shape_of(TensorId id) const {
    return bound_type(graph_.tensors[id], bound_).shape;
}

at::ScalarType Network::type_of(TensorId id) const {
    static const std::map<DType, at::ScalarType> types{
        {DType::f32, at::kFloat}, {DType::f64, at::kDouble}, {DType::f16, at::kHalf},    {DType::bf16, at::kBFloat16},
        {DType::i64, at::kLong},  {DType::i32, at::kInt},    {DType::boolean, at::kBool}};
    DType dtype = graph_.tensors[id].dtype;
    if (dtype == DType::f32 && precision_ == Precision::fp16) dtype = DType::f16;
    if (dtype == DType::f32 && precision_ == Precision::bf16) dtype = DType::bf16;
    const auto known = types.find(dtype);
    if (known == types.end()) throw Error(ErrorCode::usage, "LibTorch: no tensors of " + std::string(name_of(dtype)));
    return known->second;
}

/// What a weight is to the operator that reads it; the same as in calibration/bench/python/text_graph.py.
enum class Network::Use : std::uint8_t { other, gain, bias, mean, variance, product, table, divisor };

Network::Use Network::use_of(TensorId id) const {
    using enum Use;
    static const std::map<OpKind, std::vector<Use>> uses{{OpKind::batch_norm, {other, gain, bias, mean, variance}},
                                                         {OpKind::layer_norm, {other, gain, bias}},
                                                         {OpKind::rms_norm, {other, gain, bias}},
                                                         {OpKind::conv, {other, product, bias}},
                                                         {OpKind::linear, {other, product, bias}},
                                                         {OpKind::matmul, {other, product, bias}},
                                                         {OpKind::embedding, {table, other}}};
    for (const Op& op : graph_.ops) {
        if (op.kind == OpKind::pointwise && op.text("function") == "div" && op.inputs.size() > 1 && op.inputs[1] == id)
            return divisor;
        const auto at = std::ranges::find(op.inputs, id);
        const auto known = uses.find(op.kind);
        if (at != op.inputs.end() && known != uses.end())
            return known->second.at(static_cast<std::size_t>(at - op.inputs.begin()));
    }
    return other;
}

/// Values that keep activations finite: what overflows draws another power. Products get the variance of He et al.
/// (arXiv 1502.01852), norms those of a normed input; a constant may be a divisor or the argument of a root.
Tensor Network::filled(TensorId id) const {
    const auto options = at::TensorOptions().device(device_);
    const std::vector<std::int64_t> shape = shape_of(id);
    const at::ScalarType type = type_of(id);
    if (!at::isFloatingType(type)) {
        std::int64_t high = 2;
        for (const Op& op : graph_.ops)
            if (op.kind == OpKind::embedding && op.inputs[1] == id && type == at::kLong)
                high = shape_of(op.inputs[0])[0];
        return at::randint(high, shape, options.dtype(at::kLong)).to(type);
    }
    const auto floats = options.dtype(at::kFloat);
    const bool input = graph_.tensors[id].role == TensorRole::input;
    const Use use = use_of(id);
    if (input && use == Use::divisor) return at::randn(shape, floats).abs_().add_(1).to(type);
    if (input || use == Use::table) return at::randn(shape, floats).to(type);
    if (use == Use::gain || use == Use::variance) return at::ones(shape, floats).to(type);
    if (use == Use::bias || use == Use::mean) return at::zeros(shape, floats).to(type);
    if (use == Use::product) {
        const double fan_in = std::accumulate(shape.begin() + 1, shape.end(), 1.0, std::multiplies<>());
        return at::randn(shape, floats).mul_(std::sqrt(2 / fan_in)).to(type);
    }
    const double scale = shape.empty() ? 1.0 : 1.0 / static_cast<double>(std::max<std::int64_t>(shape.back(), 1));
    return at::rand(shape, floats).add_(0.5).mul_(scale).to(type);
}

void Network::settle() {
    settling_ = true;
    run();
    settling_ = false;
}

Network::Call Network::pointwise(const Op& op) const {
    const std::string function(op.text("function"));
    const TensorId x = op.inputs[0];
    if (op.source.starts_with("aten::masked_fill"))
        return [x, mask = op.inputs[1]](const auto& v) { return at::masked_fill(v[x], v[mask].to(at::kBool), -1e4); };
    const bool one = op.inputs.size() == 1;
    auto unary = unary_functions().find(in_place(op) ? function + "_" : function);
    if (unary == unary_functions().end()) unary = unary_functions().find(function);
    if (one && unary != unary_functions().end()) return [x, call = unary->second](const auto& v) { return call(v[x]); };
    if (!binary_functions().contains(function) || op.inputs.size() > 2) cannot_run(op, function);
    const Binary call = binary_functions().at(function);
    if (one) {
        const Tensor scalar = at::scalar_tensor(1.5, at::TensorOptions().dtype(at::kDouble));
        return [x, call, scalar](const auto& v) { return call(v[x], scalar); };
    }
    const TensorId y = op.inputs[1];
    if (function == "add" && in_place(op) && shape_of(x) == shape_of(op.outputs[0]))
        return [x, y](const auto& v) { return v[x].add_(v[y]); };
    return [x, y, call](const auto& v) { return call(v[x], v[y]); };
}

Network::Call Network::convolution(const Op& op) const {
    const std::vector<std::int64_t> stride = integers(op, "stride"), pad = integers(op, "pad_begin");
    if (pad != integers(op, "pad_end")) cannot_run(op, "with unequal padding");
    const std::vector<std::int64_t> dilation = integers(op, "dilation");
    const std::int64_t groups = op.integer("groups", 1);
    const TensorId x = op.inputs[0], w = op.inputs[1];
    const bool has_bias = op.inputs.size() > 2 && op.inputs[2] != no_tensor;
    const TensorId bias = has_bias ? op.inputs[2] : no_tensor;
    if (shape_of(x).size() != 4) cannot_run(op, "of other than two dimensions");
    return [=](const auto& v) {
        return at::conv2d(v[x], v[w], has_bias ? std::optional<Tensor>(v[bias]) : std::nullopt, stride, pad, dilation,
                          groups);
    };
}

Network::Call Network::slice(const Op& op) const {
    const TensorId x = op.inputs[0];
    const std::vector<std::int64_t> from = shape_of(x), to = shape_of(op.outputs[0]);
    if (from.size() == to.size() + 1)
        return [x, axis = op.integer("axis", 0)](const auto& v) { return v[x].select(axis, 0); };
    if (from.size() != to.size()) cannot_run(op);
    for (std::size_t axis = 0; axis < from.size(); ++axis) {
        if (from[axis] == to[axis]) continue;
        return
            [x, axis, size = to[axis]](const auto& v) { return v[x].narrow(static_cast<std::int64_t>(axis), 0, size); };
    }
    return [x](const auto& v) { return v[x].alias(); };
}

Network::Call Network::norm(const Op& op) const {
    const TensorId x = op.inputs.at(0), gain = op.inputs.at(1), bias = op.inputs.size() > 2 ? op.inputs[2] : no_tensor;
    if (op.kind == OpKind::batch_norm)
        return [this, x, gain, bias, mean = op.inputs.at(3), variance = op.inputs.at(4)](const auto& v) {
            if (settling_ && v[x].numel() > 2 * v[x].size(1)) {
                std::vector<std::int64_t> axes(static_cast<std::size_t>(v[x].dim()) - 1);
                std::iota(axes.begin() + 1, axes.end(), 2);
                v[mean].copy_(v[x].to(at::kFloat).mean(axes));
                v[variance].copy_(v[x].to(at::kFloat).var(axes));
            }
            return at::batch_norm(v[x], v[gain], v[bias], v[mean], v[variance], false, 0.1, 1e-5, true);
        };
    const std::vector<std::int64_t> input = shape_of(x);
    const auto axis = op.integer("axis", static_cast<std::int64_t>(input.size()) - 1);
    const std::vector<std::int64_t> normalized(input.begin() + axis, input.end());
    if (op.kind == OpKind::rms_norm)
        return [x, gain, normalized](const auto& v) { return at::rms_norm(v[x], normalized, v[gain]); };
    return [x, gain, bias, normalized](const auto& v) { return at::layer_norm(v[x], normalized, v[gain], v[bias]); };
}

Network::Call Network::call_for(const Op& op) const {
    const TensorId x = op.inputs.empty() ? no_tensor : op.inputs[0];
    const TensorId y = op.inputs.size() > 1 ? op.inputs[1] : no_tensor;
    const TensorId z = op.inputs.size() > 2 ? op.inputs[2] : no_tensor;
    const std::vector<std::int64_t> shape = shape_of(op.outputs[0]);
    switch (op.kind) {
        case OpKind::conv:
            return convolution(op);
        case OpKind::linear:
            if (z == no_tensor) return [x, y](const auto& v) { return at::linear(v[x], v[y]); };
            return [x, y, z](const auto& v) { return at::linear(v[x], v[y], v[z]); };
        case OpKind::matmul:
            if (z != no_tensor || op.integer("transpose_a", 0) != 0 || op.integer("transpose_b", 0) != 0)
                cannot_run(op);
            return [x, y](const auto& v) { return at::matmul(v[x], v[y]); };
        case OpKind::attention: {
            const bool shares_heads = shape.size() == 4 && shape[1] != shape_of(y)[1];
            return [x, y, z, shares_heads, causal = op.integer("causal", 0) != 0](const auto& v) {
                return at::scaled_dot_product_attention(v[x], v[y], v[z], {}, 0, causal, {}, shares_heads);
            };
        }
        case OpKind::batch_norm:
        case OpKind::layer_norm:
        case OpKind::rms_norm:
            return norm(op);
        case OpKind::softmax:
            return [x, axis = op.integer("axis", -1)](const auto& v) { return at::softmax(v[x], axis); };
        case OpKind::pointwise:
            return pointwise(op);
        case OpKind::pool:
            if (op.text("function") != "max") cannot_run(op, "average");
            return
                [x, kernel = integers(op, "kernel"), stride = integers(op, "stride"),
                 pad = integers(op, "pad_begin")](const auto& v) { return at::max_pool2d(v[x], kernel, stride, pad); };
        case OpKind::global_pool:
            return [x, size = std::vector<std::int64_t>(shape.end() - 2, shape.end())](const auto& v) {
                return at::adaptive_avg_pool2d(v[x], size);
            };
        case OpKind::embedding:
            return [x, y](const auto& v) { return at::embedding(v[x], v[y]); };
        default:
            return movement(op);
    }
}

Network::Call Network::movement(const Op& op) const {
    const TensorId x = op.inputs.empty() ? no_tensor : op.inputs[0];
    const std::vector<std::int64_t> shape = shape_of(op.outputs[0]);
    switch (op.kind) {
        case OpKind::reshape:
            return [x, shape](const auto& v) { return v[x].reshape(shape); };
        case OpKind::transpose:
            return [x, perm = integers(op, "perm")](const auto& v) { return v[x].permute(perm); };
        case OpKind::slice:
            return slice(op);
        case OpKind::expand:
            return [x, shape](const auto& v) { return v[x].expand(shape); };
        case OpKind::concat:
            return [inputs = op.inputs, axis = op.integer("axis", 0)](const auto& v) {
                std::vector<Tensor> parts;
                for (const TensorId id : inputs) parts.push_back(v[id]);
                return at::cat(parts, axis);
            };
        case OpKind::copy:
            if (op.source.ends_with("contiguous")) return [x](const auto& v) { return v[x].contiguous(); };
            return [x](const auto& v) { return v[x].clone(); };
        case OpKind::cast:
            return [x, type = type_of(op.outputs[0])](const auto& v) { return v[x].to(type); };
        case OpKind::fill:
            return [shape, options = at::TensorOptions().dtype(type_of(op.outputs[0])).device(device_)](const auto&) {
                return at::ones(shape, options);
            };
        case OpKind::identity:
            return [x](const auto& v) { return v[x]; };
        default:
            cannot_run(op);
    }
}

}  // namespace ftax::bench
