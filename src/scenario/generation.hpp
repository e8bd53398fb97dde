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

/// Implementation of `ftax generate` and Python's ftax.generate.
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

/// Cache of the model parts that one card holds, each read once. Thread-safe.
class Shards {
  public:
    /// Throws as load_shard().
    [[nodiscard]] std::shared_ptr<const Graph> load(const ModelArguments& model, std::int64_t cards);

  private:
    std::mutex mutex_;
    std::map<std::tuple<std::string, std::int64_t, int, int, int, std::string>, std::shared_ptr<const Graph>> graphs_;
};

/// Language models, each split for a number of cards.
struct GenerationModels {
    std::shared_ptr<Shards> shards = std::make_shared<Shards>();
    std::deque<std::shared_ptr<const Graph>> graphs;
    std::deque<Generator> generators;  ///< one per graph, with a reference to it

    /// Reads a model and builds its generator. An empty precision of `run` becomes that of the weights.
    Generator& add(const ModelArguments& model, RunArguments& run, std::int64_t cards,
                   const std::vector<LanguageMeasurement>& anchors, const SchedulerOptions& scheduler = {});
};

/// Removes the anchor file from the arguments if it contains runs of language models.
[[nodiscard]] std::vector<LanguageMeasurement> take_language_rows(RunArguments& run);

/// Returns the model with the precision of keys and values of the run's engine, if none is requested.
[[nodiscard]] ModelArguments with_cache_of(ModelArguments model, const RunArguments& run);
/// Loads the part of a model that one of `cards` cards holds. Throws Error{usage} for more than 64 cards.
[[nodiscard]] Graph load_shard(const ModelArguments& model, std::int64_t cards);
/// Throws Error{usage} if the framework does not split tensors or the datasheet has no bandwidth between cards.
void require_shards(const FrameworkProfile& framework, const DeviceSpec& device, std::int64_t cards);

struct GenerationResult {
    report::GenerationReport report;
    GenerationModels models;  ///< one per possible combination
};

/// Predicts each batch under each combination; an impossible one becomes a row with the reason. Throws Error{usage} for
/// misspelt arguments, Error{model} for a model that is no decoder or not divisible by the number of cards.
[[nodiscard]] GenerationResult generate(const GenerationArguments& arguments);

}  // namespace ftax::scenario
