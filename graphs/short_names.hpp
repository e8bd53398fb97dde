#pragma once

#include "ftax/graph.hpp"

namespace ftax {

/// Gives tensors and operators short names (%1, %w1), keeps those of inputs: the module paths say what is what, and a
/// graph in text form becomes half as long.
void shorten_names(Graph& graph);

}  // namespace ftax
