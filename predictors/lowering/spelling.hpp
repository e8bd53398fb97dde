#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ftax/graph.hpp"
#include "graphs/ir/rewriting/graph_edits.hpp"

namespace ftax::rewrites {

/// Appends operators and intermediate tensors to a graph under rewriting.
struct Spelling {
    Graph& graph;
    const Op& replaced;
    std::vector<Op>& ops;
    int written = 0;

    TensorId tensor(DType dtype, std::vector<Expression> shape) {
        return append(
            graph, {.name = replaced.name + "/" + std::to_string(written), .dtype = dtype, .shape = std::move(shape)});
    }
    TensorId apply(OpKind kind, std::vector<TensorId> inputs, TensorId output, std::vector<Attribute> attributes = {}) {
        ops.push_back({.kind = kind,
                       .name = replaced.name + "/" + std::to_string(++written),
                       .source = replaced.source,
                       .module = replaced.module,
                       .inputs = std::move(inputs),
                       .outputs = {output},
                       .attributes = std::move(attributes)});
        return output;
    }
};

template <class Matches, class Append>
void write_out(Graph& graph, const Matches& matches, const Append& append) {
    std::vector<Op> ops;
    ops.reserve(graph.ops.size());
    for (Op& op : graph.ops) {
        if (matches(graph, op)) {
            append(Spelling{graph, op, ops});
        } else {
            ops.push_back(std::move(op));
        }
    }
    graph.ops = std::move(ops);
    assign_producers(graph);
}

}  // namespace ftax::rewrites
