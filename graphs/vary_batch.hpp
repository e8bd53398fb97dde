#pragma once

#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Makes the batch symbolic in a graph exported for one batch size: the leading dimension of its inputs becomes `batch`
/// and is traced through all operators, so that constants that contain the batch (of reshapes, expands, folded tensors)
/// scale with it. Throws Error{usage} if inputs of two or more dimensions differ in their leading one, or naming an
/// operator that mixes the batch with another dimension.
void vary_batch(Graph& graph, Expression batch);
/// The same for the listed inputs only. Their leading dimension must be one positive number.
void vary_batch(Graph& graph, Expression batch, const std::vector<TensorId>& inputs);

}  // namespace ftax
