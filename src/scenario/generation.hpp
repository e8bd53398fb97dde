#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "ftax/generate.hpp"
#include "src/report/generation_report.hpp"
#include "src/scenario/scenario.hpp"

/// What `ftax generate` and Python's ftax.generate share.
namespace ftax::scenario {

struct GenerationArguments {
    ModelArguments model;
    RunArguments run{.precision = ""};  ///< precision: empty for the type of the model's weights
    std::string batches = "1";
    std::string tensor_parallel = "1";  ///< a list of numbers of cards
    GenerationRequest request;
    double dollars_per_hour = 0;  ///< of one card; 0: no price
    bool largest_batch = false;
};

struct GenerationResult {
    report::GenerationReport report;
    std::deque<Graph> graphs;          ///< one per number of cards
    std::deque<Generator> generators;  ///< likewise; they refer to the graphs
};

/// Predicts each batch on each number of cards. Throws Error{usage} for what the arguments misspell, Error{model} for a
/// model that is no decoder or does not divide by the number of cards.
[[nodiscard]] GenerationResult generate(const GenerationArguments& arguments);

}  // namespace ftax::scenario
