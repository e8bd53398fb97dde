#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "predictors/lowering/graph_edits.hpp"
#include "predictors/lowering/rewrites.hpp"

// What TensorRT's builder does with a network beside fusing layers.

namespace ftax::rewrites {
namespace {

/// Whether the layer that produces a tensor can be told to write it elsewhere: what comes from outside, and pieces of
/// another tensor, already lie somewhere.
bool is_movable(const Graph& graph, TensorId id) {
    const Tensor& tensor = graph.tensors[id];
    if (tensor.role != TensorRole::activation || tensor.producer == no_op) return false;
    const OpKind producer = graph.ops[tensor.producer].kind;
    return producer != OpKind::split && producer != OpKind::slice;
}

}  // namespace

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
        if (op.kind != OpKind::concat) ops.push_back(std::move(op));
        for (const TensorId part : copied[id]) {
            Tensor piece = graph.tensors[part];
            piece.name += "/" + std::to_string(ops.size());
            piece.role = TensorRole::activation;
            graph.tensors.push_back(std::move(piece));
            ops.push_back({.kind = OpKind::copy,
                           .name = op.name + "/" + std::to_string(ops.size()),
                           .source = op.source,
                           .module = op.module,
                           .inputs = {part},
                           .outputs = {static_cast<TensorId>(graph.tensors.size() - 1)}});
        }
    }
    graph.ops = std::move(ops);
    assign_producers(graph);
}

}  // namespace ftax::rewrites
