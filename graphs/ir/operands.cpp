#include "graphs/ir/operands.hpp"

#include <fmt/format.h>

#include <array>

#include "graphs/base/throw_error.hpp"
#include "graphs/ir/shape_rules.hpp"

namespace ftax {
namespace {

/// How many inputs and outputs a kind needs; one of each where it is not listed.
struct Needs {
    OpKind kind;
    std::size_t inputs, outputs;
};
constexpr std::array exceptions{
    Needs{OpKind::conv, 2, 1},    Needs{OpKind::conv_transpose, 2, 1}, Needs{OpKind::linear, 2, 1},
    Needs{OpKind::matmul, 2, 1},  Needs{OpKind::attention, 3, 1},      Needs{OpKind::embedding, 2, 1},
    Needs{OpKind::fill, 0, 1},    Needs{OpKind::shape, 0, 0},          Needs{OpKind::to_host, 0, 0},
    Needs{OpKind::control, 0, 0}, Needs{OpKind::custom, 0, 0},
};

/// Dimensions of the first input; nullopt where its shape is not known.
std::optional<std::size_t> rank_of_input(const Graph& graph, const Op& op) {
    const Tensor& input = graph.tensors[op.inputs[0]];
    return input.known_shape ? std::optional(input.shape.size()) : std::nullopt;
}

/// Says which operand of a convolution is no batch of channels; nullopt where none or `op` is no convolution.
std::optional<std::string> missing_channels(const Graph& graph, const Op& op) {
    if (op.kind != OpKind::conv && op.kind != OpKind::conv_transpose) return std::nullopt;
    for (std::size_t i = 0; i < 2; ++i) {
        const Tensor& operand = graph.tensors[op.inputs[i]];
        if (!operand.known_shape || operand.shape.size() >= 2) continue;
        return fmt::format("{} needs at least 2 dimensions; input {} has {}", name_of(op.kind), i + 1,
                           operand.shape.size());
    }
    return std::nullopt;
}

/// Says which axes `op`, which lacks no operand, names that its input does not have; nullopt where there is none.
std::optional<std::string> impossible_axes(const Graph& graph, const Op& op) {
    if (op.kind == OpKind::transpose) {
        const auto perm = op.integers("perm");
        const std::size_t rank = rank_of_input(graph, op).value_or(perm.size());
        std::vector<std::int64_t> sorted(perm.begin(), perm.end());
        std::ranges::sort(sorted);
        if (!perm.empty() && sorted != all_axes(rank))
            return fmt::format("perm [{}] is not a permutation of {} dimensions", fmt::join(perm, ","), rank);
    }
    const auto shifts = op.integers("shifts");
    if (op.kind == OpKind::slice || (op.kind == OpKind::copy && !shifts.empty())) {
        const auto rank = rank_of_input(graph, op);
        for (const std::int64_t axis : op.integers("axes"))
            if (rank && (axis < 0 || axis >= static_cast<std::int64_t>(*rank)))
                return fmt::format("axes: {} is not one of {} dimensions", axis, *rank);
        if (!shifts.empty() && shifts.size() != op.integers("axes").size())
            return fmt::format("{} shifts for {} axes", shifts.size(), op.integers("axes").size());
    }
    return std::nullopt;
}

}  // namespace

const Tensor* tensor_at(const Graph& graph, const std::vector<TensorId>& operands, std::size_t i) {
    return i < operands.size() && operands[i] != no_tensor ? &graph.tensors[operands[i]] : nullptr;
}

std::optional<std::string> missing_operand(const Op& op) {
    const auto* const found = std::ranges::find(exceptions, op.kind, &Needs::kind);
    const Needs needs = found == exceptions.end() ? Needs{op.kind, 1, 1} : *found;
    for (std::size_t i = 0; i < needs.inputs; ++i) {
        if (i < op.inputs.size() && op.inputs[i] != no_tensor) continue;
        return fmt::format("{} needs {} input{}; input {} is absent", name_of(op.kind), needs.inputs,
                           needs.inputs == 1 ? "" : "s", i + 1);
    }
    if (op.outputs.size() < needs.outputs) return fmt::format("{} has no output", name_of(op.kind));
    return std::nullopt;
}

void check_operands(const Graph& graph) {
    for (const Op& op : graph.ops) {
        auto wrong = missing_operand(op);
        if (!wrong) wrong = missing_channels(graph, op);
        if (!wrong) wrong = impossible_axes(graph, op);
        if (wrong) throw_error(ErrorCode::model, "{}: operator {}: {}", graph.name, op.name, *wrong);
    }
}

bool is_view(const Op& op) {
    using enum OpKind;
    return op.is(reshape, transpose, slice, split, expand, identity);
}

TensorId viewed(const Graph& graph, TensorId tensor) {
    for (;;) {
        const OpId producer = graph.tensors[tensor].producer;
        if (producer == no_op || !is_view(graph.ops[producer])) return tensor;
        const std::vector<TensorId>& inputs = graph.ops[producer].inputs;
        if (inputs.empty() || inputs[0] == no_tensor) return tensor;
        tensor = inputs[0];
    }
}

bool differs_between_queries(const Graph& graph, TensorId mask) {
    const std::vector<Expression>& shape = graph.tensors[mask].shape;
    return shape.size() >= 2 && graph.expressions.constant_value(shape[shape.size() - 2]) != 1;
}

std::int64_t looked_up_elements(const Graph& graph, const Op& lookup, const BoundShapes& bound) {
    const auto elements = [&](TensorId id) {
        return id != no_tensor && graph.tensors[id].known_shape ? element_count(graph.tensors[id], bound) : 0;
    };
    const std::int64_t written = lookup.outputs.empty() ? 0 : elements(lookup.outputs[0]);
    if (lookup.kind != OpKind::embedding || lookup.inputs.size() < 2) return written;
    const std::int64_t table = elements(lookup.inputs[0]), indices = elements(lookup.inputs[1]);
    if (table == 0 || indices == 0 || is_float(graph.tensors[lookup.inputs[1]].dtype)) return written;
    const auto& shape = graph.tensors[lookup.inputs[0]].shape;
    const std::int64_t rows = shape.empty() ? 1 : std::max<std::int64_t>(1, bound[shape[0]]);
    return std::max(written, checked_multiply(indices, table / rows));
}

std::size_t scatter_bases(const Op& scatter) {
    return std::min(scatter.inputs.size(),
                    static_cast<std::size_t>(std::max<std::int64_t>(1, scatter.integer("bases", 1))));
}

std::vector<TensorId> scattered(const Graph& graph, const Op& scatter) {
    std::vector<TensorId> updates;
    const std::size_t bases = scatter_bases(scatter);
    if (scatter.inputs.empty() || scatter.inputs[0] == no_tensor || scatter.outputs.empty()) return updates;
    if (graph.tensors[scatter.inputs[0]].shape != graph.tensors[scatter.outputs[0]].shape) return updates;
    for (std::size_t i = bases; i < scatter.inputs.size(); ++i)
        if (scatter.inputs[i] != no_tensor) updates.push_back(scatter.inputs[i]);
    if (updates.size() > bases) updates.erase(updates.begin(), updates.end() - static_cast<std::ptrdiff_t>(bases));
    return updates;
}

std::vector<bool> written_weights(const Graph& graph) {
    std::vector<bool> written(graph.tensors.size());
    for (const Op& op : graph.ops) {
        if (op.kind != OpKind::scatter || scattered(graph, op).empty()) continue;
        for (std::size_t i = 0; i < scatter_bases(op); ++i) {
            if (op.inputs[i] == no_tensor) continue;
            const TensorId base = viewed(graph, op.inputs[i]);
            if (graph.tensors[base].role == TensorRole::weight) written[base] = true;
        }
    }
    return written;
}

DType half_type_of_weights(const Graph& graph) {
    for (const Tensor& tensor : graph.tensors)
        if (tensor.role == TensorRole::weight && (tensor.dtype == DType::f16 || tensor.dtype == DType::bf16))
            return tensor.dtype;
    return DType::f32;
}

AttentionWidths attention_widths(const Graph& graph, const Op& attention, const BoundShapes& bound) {
    const auto last = [&](const std::vector<TensorId>& operands, std::size_t i, std::size_t from_end) -> std::int64_t {
        const Tensor* tensor = tensor_at(graph, operands, i);
        if (tensor == nullptr || tensor->shape.size() < from_end) return 1;
        return bound[tensor->shape[tensor->shape.size() - from_end]];
    };
    const std::int64_t query = last(attention.inputs, 0, 1), value = last(attention.inputs, 2, 1);
    if (attention.integer(selects_attribute, 0) > 0) return {query, 0, true};
    const std::int64_t latent = attention.integer(latent_attribute, 0), keys = last(attention.inputs, 1, 2);
    if (latent == 0) return {query, value};
    const bool gathers = latent == 2 && keys > attention.integer(window_attribute, 0);
    if (last(attention.inputs, 0, 2) > 1 && !gathers) return {query, last(attention.outputs, 0, 1)};
    const std::int64_t rank = last(attention.inputs, 1, 1);
    return {checked_add(rank, value), rank, true};
}

RecurrentDimensions recurrent_dimensions(const Graph& graph, const Op& recurrent, const BoundShapes& bound) {
    const std::string_view cell = recurrent.text("cell");
    RecurrentDimensions d;
    d.gates = cell == "lstm" ? 4 : cell == "gru" ? 3 : 1;
    d.hidden = std::max<std::int64_t>(1, recurrent.integer("hidden", 1));
    d.layers = std::max<std::int64_t>(1, recurrent.integer("layers", 1));
    d.directions = std::max<std::int64_t>(1, recurrent.integer("directions", 1));
    const Tensor* x = tensor_at(graph, recurrent.inputs, 0);
    if (x == nullptr || !x->known_shape || x->shape.empty()) return d;
    const auto dim = [&](std::size_t axis) { return std::max<std::int64_t>(1, bound[x->shape[axis]]); };
    d.input = dim(x->shape.size() - 1);
    if (x->shape.size() == 2) {
        d.batch = dim(0);
        const Tensor* sizes = recurrent.integer("packed", 0) != 0 ? tensor_at(graph, recurrent.inputs, 1) : nullptr;
        if (sizes == nullptr || !sizes->known_shape || sizes->shape.empty()) return d;
        d.steps = std::max<std::int64_t>(1, bound[sizes->shape[0]]);
        d.batch = (dim(0) - 1) / d.steps + 1;
    } else if (x->shape.size() == 3) {
        const bool batch_first = recurrent.integer("batch_first", 0) != 0;
        d.steps = dim(batch_first ? 1 : 0);
        d.batch = dim(batch_first ? 0 : 1);
    }
    return d;
}

bool is_cache_name(std::string_view name) {
    const auto holds = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    return holds("past_key") || holds("key_cache") || holds("value_cache") || holds("kv_cache") ||
           (holds("cache") && (holds("key") || holds("value")));
}

void assign_producers(Graph& graph) {
    for (Tensor& tensor : graph.tensors) tensor.producer = no_op;
    for (OpId id = 0; id < graph.ops.size(); ++id)
        for (const TensorId output : graph.ops[id].outputs) graph.tensors[output].producer = id;
}

}  // namespace ftax
