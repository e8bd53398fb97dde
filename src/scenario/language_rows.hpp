#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ftax/generate.hpp"
#include "ftax/measurement.hpp"
#include "src/report/validation_report.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::scenario {

/// Conditions the host and the card of a scenario on rows measured on that card, all on one machine; rows of `model`
/// also condition the error of that model. Ignores rows of other cards; warns of what no row describes.
/// Throws Error for a row whose model locate_model() does not find.
void anchor_on(Scenario& scenario, std::span<const LanguageMeasurement> rows, const std::string& model,
               const RunArguments& run);

/// Predicts rows of measured language models. Caches graphs and generators.
class LanguagePredictor {
  public:
    /// Rows are `run` with their own cells, as in RowPredictor.
    explicit LanguagePredictor(RunArguments run = {}) : run_(std::move(run)) {}

    /// Sets the rows on which later predictions are conditioned.
    void anchor(std::vector<LanguageMeasurement> rows) { anchors_ = std::move(rows); }
    /// Excludes the row itself from the anchors. Throws Error for unsupported requests of the row.
    [[nodiscard]] Generation predict(const LanguageMeasurement& row);
    /// Returns the profiles used by predict().
    [[nodiscard]] std::set<report::UsedProfile> profiles() const;

  private:
    struct Entry {
        std::unique_ptr<Graph> graph;
        std::unique_ptr<Generator> generator;
    };

    [[nodiscard]] Entry build(const LanguageMeasurement& row, std::span<const LanguageMeasurement> anchors) const;

    RunArguments run_;
    std::vector<LanguageMeasurement> anchors_;
    std::map<std::tuple<std::string, std::string, std::string, std::string, Precision, std::int64_t>, Entry> entries_;
};

}  // namespace ftax::scenario
