#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "graphs/ir/operands.hpp"

/// Edits for passes that process a graph in execution order; passes that match patterns use rewriter.hpp.
namespace ftax {

/// Returns the number of readers of each tensor; graph outputs have an additional reader.
[[nodiscard]] std::vector<int> count_readers(const Graph& graph);
/// Returns the operators that read each tensor, in order, as often as they read it.
[[nodiscard]] std::vector<std::vector<OpId>> readers_of(const Graph& graph);
/// Returns the producer of `tensor` if it has a single reader (of count_readers()) and `accept` accepts it; else no_op.
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
        for (const TensorId input : present(op.inputs)) --readers[input];
    }
    erase(graph, removed);
}
/// Marks tensors all of whose readers `accepts` takes, or `passes` takes and their results are marked.
template <class Accepts, class Passes>
std::vector<bool> read_only_by(const Graph& graph, const Accepts& accepts, const Passes& passes) {
    std::vector<bool> marked(graph.tensors.size(), true), read(graph.tensors.size(), false);
    for (const TensorId output : graph.outputs) marked[output] = false;
    for (OpId id = static_cast<OpId>(graph.ops.size()); id-- > 0;) {
        const Op& op = graph.ops[id];
        const bool on = accepts(op) || (passes(op) && std::ranges::all_of(op.outputs, [&](TensorId result) {
                                            return marked[result] && read[result];
                                        }));
        for (const TensorId input : present(op.inputs)) {
            read[input] = true;
            marked[input] = marked[input] && on;
        }
    }
    for (std::size_t i = 0; i < marked.size(); ++i) marked[i] = marked[i] && read[i];
    return marked;
}

}  // namespace ftax
