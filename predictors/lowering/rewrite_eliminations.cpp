#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphs/ir/rewriting/graph_edits.hpp"
#include "predictors/lowering/rewrites.hpp"

// Operators that exporters or engine builders remove.

namespace ftax::rewrites {
namespace {

bool is_fixed(const Graph& graph, TensorId id) {
    const Tensor& tensor = graph.tensors[id];
    return tensor.known_shape && std::ranges::all_of(tensor.shape, [&](Expression dimension) {
               return graph.expressions.constant_value(dimension).has_value();
           });
}

/// Returns true for operators that are never folded: random numbers, control flow, unknown operators, and those kept
/// for quantising providers. Source: ONNX Runtime, ConstantFolding (skip_dequantize_linear).
bool is_uncertain(const Op& op) {
    if (op.is(OpKind::custom, OpKind::control, OpKind::to_host, OpKind::dequantize)) return true;
    if (op.kind != OpKind::fill) return false;
    constexpr std::string_view names[] = {"rand", "Random", "bernoulli", "Bernoulli", "normal", "uniform"};
    return std::ranges::any_of(names, [&](std::string_view name) { return op.source.find(name) != op.source.npos; });
}

/// Whether the result equals the first input: changes of layout or owner, full slices, concatenations of one tensor.
bool is_copy(const Graph& graph, const Op& op) {
    if (op.inputs.empty() || op.inputs[0] == no_tensor || op.outputs.size() != 1) return false;
    const Tensor& input = graph.tensors[op.inputs[0]];
    const Tensor& output = graph.tensors[op.outputs[0]];
    const bool same_shape = input.known_shape && output.known_shape && input.shape == output.shape;
    if (op.kind == OpKind::copy) return op.source == "aten::contiguous" || op.source == "aten::clone";
    if (op.kind == OpKind::concat) return op.inputs.size() == 1;
    return op.kind == OpKind::identity || (op.is(OpKind::slice, OpKind::expand) && same_shape);
}

/// Concatenations with empty tensors (an empty cache), which exporters omit.
void drop_empty_parts(const Graph& graph, Op& op) {
    if (op.kind != OpKind::concat) return;
    const auto is_empty = [&](TensorId id) {
        const auto is_zero = [&](Expression dim) { return graph.expressions.constant_value(dim) == 0; };
        return id != no_tensor && graph.tensors[id].known_shape &&
               std::ranges::any_of(graph.tensors[id].shape, is_zero);
    };
    if (!std::ranges::all_of(op.inputs, is_empty)) std::erase_if(op.inputs, is_empty);
}

/// Whether the producer of a tensor can write it elsewhere; graph inputs and pieces of other tensors have their place.
bool is_movable(const Graph& graph, TensorId id) {
    const Tensor& tensor = graph.tensors[id];
    if (tensor.role != TensorRole::activation || tensor.producer == no_op) return false;
    const OpKind producer = graph.ops[tensor.producer].kind;
    return producer != OpKind::split && producer != OpKind::slice;
}

}  // namespace

/// Removes operators of fixed shape that do not depend on any input; their results become weights.
/// Source: ONNX Runtime, ConstantFolding.
void fold_constants(Graph& graph) {
    std::vector<bool> removed(graph.ops.size(), false);
    const auto is_known = [&](TensorId id) {
        return id == no_tensor || graph.tensors[id].role == TensorRole::weight ||
               graph.tensors[id].role == TensorRole::constant;
    };
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        const Op& op = graph.ops[id];
        if (is_uncertain(op)) continue;
        // Operators that fill or expand like a tensor only use its shape.
        const std::size_t read = op.kind == OpKind::fill ? 0 : op.kind == OpKind::expand ? 1 : op.inputs.size();
        const auto end = op.inputs.begin() + static_cast<std::ptrdiff_t>(std::min(read, op.inputs.size()));
        const auto has_fixed_shape = [&](TensorId output) { return is_fixed(graph, output); };
        if (!std::all_of(op.inputs.begin(), end, is_known) || !std::ranges::all_of(op.outputs, has_fixed_shape))
            continue;
        for (const TensorId output : op.outputs) graph.tensors[output].role = TensorRole::weight;
        removed[id] = true;
    }
    erase(graph, removed);
}

/// Removes operators that return their input: contiguous, clone, dropout, full slices, concatenations of one tensor.
/// Source: torch.onnx, which writes no node for contiguous; ONNX Runtime, EliminateIdentity, EliminateDropout,
/// EliminateSlice, ExpandElimination.
void remove_copies(Graph& graph) {
    std::vector<TensorId> stands_for(graph.tensors.size());
    for (TensorId id = 0; id < stands_for.size(); ++id) stands_for[id] = id;
    const auto resolve = [&](std::vector<TensorId>& ids) {
        for (TensorId& id : ids)
            if (id != no_tensor) id = stands_for[id];
    };
    std::vector<bool> removed(graph.ops.size(), false);
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        Op& op = graph.ops[id];
        resolve(op.inputs);
        drop_empty_parts(graph, op);
        removed[id] = is_copy(graph, op);
        if (removed[id]) stands_for[op.outputs[0]] = op.inputs[0];
    }
    resolve(graph.outputs);
    erase(graph, removed);
}

/// Removes concatenations: each part is written directly into the joined tensor. A tensor has only one location, so
/// parts of several concatenations, inputs and pieces of a split are copied.
/// Source: TensorRT's build log, "Eliminating concatenation", last one first, "Retargeting … to …" and "Generating copy
/// for … because input is not movable".
void eliminate_concatenations(Graph& graph) {
    assign_producers(graph);
    std::vector<bool> moved(graph.tensors.size(), false);
    std::vector<std::vector<TensorId>> copied(graph.ops.size());
    for (OpId id = static_cast<OpId>(graph.ops.size()); id-- > 0;) {
        const Op& op = graph.ops[id];
        if (op.kind != OpKind::concat || op.inputs.size() == 1) continue;
        for (const TensorId part : op.inputs) {
            if (part == no_tensor || graph.tensors[part].role == TensorRole::constant) continue;
            if (moved[part] || !is_movable(graph, part)) copied[id].push_back(part);
            moved[part] = true;
        }
    }
    std::vector<Op> ops;
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        Op& op = graph.ops[id];
        for (const TensorId part : copied[id]) {
            Tensor piece = graph.tensors[part];
            piece.name += "/" + std::to_string(ops.size());
            piece.role = TensorRole::activation;
            ops.push_back({.kind = OpKind::copy,
                           .name = op.name + "/" + std::to_string(ops.size()),
                           .source = op.source,
                           .module = op.module,
                           .inputs = {part},
                           .outputs = {append(graph, std::move(piece))}});
        }
        if (op.kind != OpKind::concat) ops.push_back(std::move(op));
    }
    graph.ops = std::move(ops);
    assign_producers(graph);
}

}  // namespace ftax::rewrites
