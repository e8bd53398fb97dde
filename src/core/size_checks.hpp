#pragma once

#include "ftax/graph.hpp"

namespace ftax {

/// Fills graph.size_checks with pairs of sizes that an operator requires to be equal, but that are different symbolic
/// expressions: reshapes to constants of the exported size, operands that must broadcast.
void find_size_checks(Graph& graph);

}  // namespace ftax
