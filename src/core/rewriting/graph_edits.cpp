#include "src/core/rewriting/graph_edits.hpp"

#include <utility>

namespace ftax {

void assign_producers(Graph& graph) {
    for (Tensor& tensor : graph.tensors) tensor.producer = no_op;
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        for (const TensorId output : graph.ops[id].outputs) graph.tensors[output].producer = id;
    }
}

std::vector<int> count_readers(const Graph& graph) {
    std::vector<int> readers(graph.tensors.size(), 0);
    for (const Op& op : graph.ops) {
        for (const TensorId input : op.inputs) {
            if (input != no_tensor) ++readers[input];
        }
    }
    for (const TensorId output : graph.outputs) ++readers[output];
    return readers;
}

std::vector<std::vector<OpId>> readers_of(const Graph& graph) {
    std::vector<std::vector<OpId>> readers(graph.tensors.size());
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        for (const TensorId input : graph.ops[id].inputs) {
            if (input != no_tensor) readers[input].push_back(id);
        }
    }
    return readers;
}

void erase(Graph& graph, const std::vector<bool>& removed) {
    std::size_t kept = 0;
    for (std::size_t id = 0; id < graph.ops.size(); ++id) {
        if (removed[id]) continue;
        if (kept != id) graph.ops[kept] = std::move(graph.ops[id]);
        ++kept;
    }
    graph.ops.resize(kept);
    assign_producers(graph);
}

}  // namespace ftax
