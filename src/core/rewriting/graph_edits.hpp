#pragma once

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

}  // namespace ftax
