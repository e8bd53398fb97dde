#pragma once

#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Sets Tensor::producer of every tensor anew after operators moved.
void assign_producers(Graph& graph);
/// Drops the operators marked, keeping the order of the others.
void erase(Graph& graph, const std::vector<bool>& removed);

}  // namespace ftax
