#pragma once

#include "ftax/graph.hpp"

namespace ftax {

/// Lets the batch vary in a graph that was exported for one batch size: the leading dimension of every input becomes
/// `batch`, and the dimension that carries it is followed through all operators.
/// Throws Error{usage} when the inputs differ in their leading dimension, or naming the operator that mixes the batch
/// into another dimension so that it cannot be followed.
void vary_batch(Graph& graph, Expression batch);

}  // namespace ftax
