#pragma once

#include <deque>
#include <string>
#include <vector>

#include "ftax/generate.hpp"
#include "ftax/measurement.hpp"
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

/// Language models, each cut for a number of cards.
struct GenerationModels {
    std::deque<Graph> graphs;
    std::deque<Generator> generators;  ///< one for each graph, to which it refers

    /// Reads a model and builds what generates with it. An empty precision of `run` becomes that of the weights.
    Generator& add(const ModelArguments& model, RunArguments& run, std::int64_t cards,
                   const std::vector<LanguageMeasurement>& anchors);
};

/// The type of the weights, as far as the device computes in it; engines take f32 weights as f16.
/// Source: vLLM, --dtype auto.
[[nodiscard]] std::string precision_of(const Graph& graph, const DeviceSpec& device, const std::string& framework);
/// Takes the file of anchor rows out of the arguments where it holds runs of language models.
[[nodiscard]] std::vector<LanguageMeasurement> take_language_rows(RunArguments& run);

struct GenerationResult {
    report::GenerationReport report;
    GenerationModels models;  ///< one per number of cards
};

/// Predicts each batch on each number of cards. Throws Error{usage} for what the arguments misspell, Error{model} for a
/// model that is no decoder or does not divide by the number of cards.
[[nodiscard]] GenerationResult generate(const GenerationArguments& arguments);

}  // namespace ftax::scenario
