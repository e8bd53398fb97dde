#pragma once

#include "ftax/graph.hpp"

namespace ftax {

/// Lists in graph.size_checks where an operator needs two sizes to be equal that depend on symbols and are not the same
/// expression: a reshape to the constants of the size a model was exported at, operands that must broadcast.
void find_size_checks(Graph& graph);

}  // namespace ftax
