#pragma once

#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Lets the batch vary in a graph that was exported for one batch size: the leading dimension of its inputs becomes
/// `batch`, and the dimension that holds the batch is followed through all operators, so that constants in which the
/// exporter wrote the batch (of reshapes, expands, folded tensors) scale with it.
/// Throws Error{usage} when inputs of two or more dimensions differ in their leading one, or naming the operator that
/// mixes the batch with another dimension.
void vary_batch(Graph& graph, Expression batch);
/// The same for the inputs listed; the others stay as they are. Their leading dimension must be one positive number.
void vary_batch(Graph& graph, Expression batch, const std::vector<TensorId>& inputs);

}  // namespace ftax
