#pragma once

#include <algorithm>
#include <vector>

#include "ftax/graph.hpp"

/// Edits for passes that walk over a graph in execution order; passes that look around in it use rewriter.hpp.
namespace ftax {

/// Sets Tensor::producer of every tensor after operators moved.
void assign_producers(Graph& graph);
/// Returns how often each tensor is read; an output of the graph counts as read once more.
[[nodiscard]] std::vector<int> count_readers(const Graph& graph);
/// Returns the operator that produces `tensor` for one reader only, `readers` as count_readers() gives them, where it
/// is one that `accept` takes; else no_op.
template <class Accept>
OpId sole_producer(const Graph& graph, const std::vector<int>& readers, TensorId tensor, const Accept& accept) {
    const OpId producer = graph.tensors[tensor].producer;
    return producer != no_op && readers[tensor] == 1 && accept(graph.ops[producer]) ? producer : no_op;
}
/// Drops the operators marked, keeping the order of the others.
void erase(Graph& graph, const std::vector<bool>& removed);
/// Drops the operators that `accept` takes and whose results are not read, and so on with what only they read.
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
