#include "graphs/ir/rewriting/graph_edits.hpp"

namespace ftax {

std::vector<int> count_readers(const Graph& graph) {
    std::vector<int> readers(graph.tensors.size(), 0);
    for (const Op& op : graph.ops)
        for (const TensorId input : present(op.inputs)) ++readers[input];
    for (const TensorId output : graph.outputs) ++readers[output];
    return readers;
}

std::vector<std::vector<OpId>> readers_of(const Graph& graph) {
    std::vector<std::vector<OpId>> readers(graph.tensors.size());
    for (OpId id = 0; id < graph.ops.size(); ++id)
        for (const TensorId input : present(graph.ops[id].inputs)) readers[input].push_back(id);
    return readers;
}

void erase(Graph& graph, const std::vector<bool>& removed) {
    auto is_removed = removed.begin();
    std::erase_if(graph.ops, [&](const Op&) { return *is_removed++; });
    assign_producers(graph);
}

}  // namespace ftax
