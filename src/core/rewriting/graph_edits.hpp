#pragma once

#include <algorithm>
#include <vector>

#include "ftax/graph.hpp"

/// Edits for passes that process a graph in execution order; passes that match patterns use rewriter.hpp.
namespace ftax {

void assign_producers(Graph& graph);
/// Returns the number of readers of each tensor; graph outputs have an additional reader.
[[nodiscard]] std::vector<int> count_readers(const Graph& graph);
/// Returns the operators that read each tensor, in order, as often as they read it.
[[nodiscard]] std::vector<std::vector<OpId>> readers_of(const Graph& graph);
/// Returns the producer of `tensor` if it has a single reader (`readers` from count_readers()) and `accept` accepts it;
/// else no_op.
template <class Accept>
OpId sole_producer(const Graph& graph, const std::vector<int>& readers, TensorId tensor, const Accept& accept) {
    const OpId producer = graph.tensors[tensor].producer;
    return producer != no_op && readers[tensor] == 1 && accept(graph.ops[producer]) ? producer : no_op;
}
/// Removes the marked operators, keeping the order of the others.
void erase(Graph& graph, const std::vector<bool>& removed);
/// Removes operators accepted by `accept` whose results are unread, and recursively their exclusive inputs.
template <class Accept>
void erase_unread(Graph& graph, const Accept& accept) {
    std::vector<int> readers = count_readers(graph);
    std::vector<bool> removed(graph.ops.size(), false);
    for (OpId id = static_cast<OpId>(graph.ops.size()); id-- > 0;) {
        const Op& op = graph.ops[id];
        const auto is_read = [&](TensorId output) { return readers[output] > 0; };
        if (std::ranges::any_of(op.outputs, is_read) || !accept(op)) continue;
        removed[id] = true;
        for (const TensorId input : op.inputs) {
            if (input != no_tensor) --readers[input];
        }
    }
    erase(graph, removed);
}

}  // namespace ftax
