#pragma once

#include <string>

#include "src/report/comparison_report.hpp"
#include "src/scenario/combinations.hpp"

/// Implementation of `ftax compare` and Python's ftax.compare.
namespace ftax::scenario {

struct ComparisonArguments {
    ModelArguments model;
    RunArguments run;  ///< device, framework and precision are lists
    ChoiceArguments choice;
    std::string batches;
    double rate = 0;  ///< items per second that all servers together do; 0: what one does
};

/// Predicts each batch under each combination; one that cannot run (a precision that the device lacks) becomes a row
/// with the reason. `graph` is the model on one card. Throws Error{usage} for misspelt arguments, and if none can run.
[[nodiscard]] report::ComparisonReport compare(const Graph& graph, const ComparisonArguments& arguments);

}  // namespace ftax::scenario
