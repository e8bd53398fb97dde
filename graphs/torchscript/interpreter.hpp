#pragma once

#include "ftax/import.hpp"
#include "graphs/torchscript/program.hpp"

namespace ftax::script {

/// Interprets the forward method of a program with inputs of the given shapes and appends the dispatched operators to
/// `graph`, in order: follows calls and resolves conditions and trip counts that do not depend on data. No tensor is
/// computed. A condition on data: the branch that ImportOptions::branches names, else the one with more operators, with
/// a warning. A loop without a known number of passes: ImportOptions::trip_counts by its name, else one pass with a
/// warning. Throws Error{usage} for an input without a shape, Error{model} for a program that fails, Error{limit}
/// beyond the limits of `options`, whose nodes count each time they are passed.
void interpret(Program program, const ImportOptions& options, Graph& graph);

}  // namespace ftax::script
