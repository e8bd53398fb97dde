#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "ftax/generate.hpp"
#include "ftax/measurement.hpp"
#include "src/report/generation_report.hpp"
#include "src/scenario/combinations.hpp"
#include "src/scenario/scenario.hpp"

/// What `ftax generate` and Python's ftax.generate share.
namespace ftax::scenario {

struct GenerationArguments {
    ModelArguments model;
    /// Device, framework and precision are lists; no precision: the type of the model's weights.
    RunArguments run;
    std::string batches = "1";
    ChoiceArguments choice;
    GenerationRequest request;
    bool largest_batch = false;
};

/// Parts of models that one card holds, each read once; several threads may ask.
class Shards {
  public:
    /// Throws as load_shard().
    [[nodiscard]] std::shared_ptr<const Graph> load(const ModelArguments& model, std::int64_t cards);

  private:
    std::mutex mutex_;
    std::map<std::tuple<std::string, std::int64_t, int, int, int, std::string>, std::shared_ptr<const Graph>> graphs_;
};

/// Language models, each cut for a number of cards.
struct GenerationModels {
    std::shared_ptr<Shards> shards = std::make_shared<Shards>();
    std::deque<std::shared_ptr<const Graph>> graphs;
    std::deque<Generator> generators;  ///< one for each graph, to which it refers

    /// Reads a model and builds what generates with it. An empty precision of `run` becomes that of the weights.
    Generator& add(const ModelArguments& model, RunArguments& run, std::int64_t cards,
                   const std::vector<LanguageMeasurement>& anchors);
};

/// Takes the file of anchor rows out of the arguments where it holds runs of language models.
[[nodiscard]] std::vector<LanguageMeasurement> take_language_rows(RunArguments& run);

/// The part of a model that one of so many cards holds. Throws Error{usage} for more than 64 of them.
[[nodiscard]] Graph load_shard(const ModelArguments& model, std::int64_t cards);
/// Throws Error{usage} where the framework cuts no tensors or the datasheet has no bandwidth between cards.
void require_shards(const FrameworkProfile& framework, const DeviceSpec& device, std::int64_t cards);

struct GenerationResult {
    report::GenerationReport report;
    GenerationModels models;  ///< one per combination that can run
};

/// Predicts each batch under each combination; one that cannot run is a row with the reason. Throws Error{usage} for
/// what the arguments misspell, Error{model} for a model that is no decoder or does not divide by the number of cards.
[[nodiscard]] GenerationResult generate(const GenerationArguments& arguments);

}  // namespace ftax::scenario
