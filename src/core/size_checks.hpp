#pragma once

#include "ftax/graph.hpp"

namespace ftax {

/// Lists in graph.size_checks where an operator needs two sizes to be equal that depend on symbols and are not the same
/// expression: a reshape to the constants of the size a model was exported at, operands that must broadcast.
void find_size_checks(Graph& graph);

/// Throws Error{model} naming the first operator whose sizes differ for these values.
void check_sizes(const Graph& graph, const BoundShapes& bound);

}  // namespace ftax
