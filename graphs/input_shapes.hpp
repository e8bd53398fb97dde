#pragma once

#include <vector>

#include "ftax/import.hpp"

namespace ftax {

/// Applies the shapes a user gives to a graph whose own shapes are known: a symbol of an input becomes what the user
/// writes in its place ("x:4x3x224x224" makes batch 4, "x:nx3x224x224" renames it), everywhere in the graph.
/// Throws Error{usage} for an unknown input, another rank, or a number that the file fixes to another value.
void apply_input_shapes(Graph& graph, const std::vector<InputShape>& shapes);

}  // namespace ftax
