#pragma once

#include <string>

#include "src/report/comparison_report.hpp"
#include "src/scenario/combinations.hpp"

/// What `ftax compare` and Python's ftax.compare share.
namespace ftax::scenario {

struct ComparisonArguments {
    ModelArguments model;
    RunArguments run;  ///< device, framework and precision are lists
    ChoiceArguments choice;
    std::string batches;
};

/// Predicts each batch under each combination; one that does not exist (a precision that the device lacks) is a row
/// with the reason. `graph` is the model on one card. Throws Error{usage} for what the arguments misspell and where no
/// combination can run.
[[nodiscard]] report::ComparisonReport compare(const Graph& graph, const ComparisonArguments& arguments);

}  // namespace ftax::scenario
