#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ftax/anchor.hpp"
#include "ftax/graph.hpp"
#include "ftax/measurement.hpp"
#include "ftax/predict.hpp"
#include "predictors/lowering/kernel_shapes.hpp"
#include "src/report/validation_report.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::scenario {

struct Change;

/// Predicts rows of model measurement files. Caches graphs and predictors, so thousands of rows of a few models cost
/// little more than the predictions themselves.
class RowPredictor {
  public:
    /// Rows are `run` with their own cells: its models folder, device profile, CPU and load hold for all, its host and
    /// its host costs for rows of its framework. `dims`: values of symbols without a column in the rows.
    explicit RowPredictor(RunArguments run = {}, ShapeBindings dims = {})
        : run_(std::move(run)), dims_(std::move(dims)) {}

    /// Predicts one row, with host and card conditioned on the anchor rows, if any; excludes the row itself from them
    /// if its card has at most `most_left_out`. Throws Error for an unsupported device, framework, model or shape.
    [[nodiscard]] Prediction predict(const Measurement& row);

    static constexpr std::size_t most_left_out = 200;

    /// Predicts rows of which one thing is changed; nullopt for those that the change does not apply to.
    [[nodiscard]] std::vector<std::optional<Prediction>> predict_changed(std::span<const Measurement> rows,
                                                                         const Change& change);

    /// Returns the profiles used by predict().
    [[nodiscard]] std::set<report::UsedProfile> profiles() const;

    /// Returns the kernels launched by a row's forward pass.
    [[nodiscard]] std::vector<CountedKernel> kernels(const Measurement& row);

    /// Returns the predictor of a row and the values of its model's symbols. Throws what predict() throws.
    [[nodiscard]] std::pair<Predictor&, ShapeBindings> bound(const Measurement& row);

    /// Replaces the host costs of a framework; forgets anchors.
    void set_costs(FrameworkProfile costs);

    /// Calibrates hosts and cards with measured rows; call before predict(). Returns warnings. Rows of one run, or
    /// without a run, belong to one machine. Throws Error{usage} if there is no row.
    std::vector<std::string> anchor(std::span<const Measurement> rows);

    /// Returns, for each GPU, the rows that would narrow the intervals of all its rows most as anchors.
    [[nodiscard]] std::map<std::string, AnchorPlan> suggest(std::span<const Measurement> rows);

    /// Returns the posterior from a card's anchor rows, for a model that may be among them; null without rows. `run`: a
    /// module with power modes is another card in each run.
    [[nodiscard]] const Conditioned* conditioned(const std::string& device_slug, const std::string& run,
                                                 const std::string& model);

  private:
    /// Model, host (with framework and device), version, CPU, precision, channels_last, synchronized, copies, mode.
    using Key = std::tuple<std::string, HostKey, std::string, std::string, Precision, bool, bool, bool, std::string>;

    /// Returns the row with canonical names. Throws Error{usage} for rows that cannot be predicted.
    [[nodiscard]] static Measurement predictable(const Measurement& row);
    [[nodiscard]] const Graph& graph(const std::string& model);
    [[nodiscard]] Predictor& predictor(const Measurement& row);
    [[nodiscard]] RunArguments arguments_of(const Measurement& row) const;
    /// Returns the predictor for the host and card of `known`; null: those of the profiles.
    [[nodiscard]] Predictor build(const Measurement& row, const Conditioned* known);
    struct Anchor {
        Measurement measured;  ///< the row as read from the file
        AnchorRow row;
    };
    using Card = std::pair<std::string, std::string>;  ///< device, and the run of a module with power modes
    /// Returns the card of a run's anchor rows: rows without a run apply to every run.
    [[nodiscard]] Card card_of(const std::string& device_slug, const std::string& run) const;
    [[nodiscard]] std::optional<Conditioned> conditioned_on(const Card& card, const std::string& model,
                                                            const Anchor* left_out);
    [[nodiscard]] ShapeBindings bindings_of(const Measurement& row);
    [[nodiscard]] AnchorRow anchor_row_of(const Measurement& row);

    RunArguments run_;
    ShapeBindings dims_;
    std::map<std::string, Graph> graphs_;
    std::map<Key, Predictor> predictors_;
    std::map<Card, std::vector<Anchor>> anchors_;
    std::map<std::pair<Card, std::string>, Conditioned> conditioned_;  ///< by card and anchored model
};

/// Returns the run of a row with these cells: `run` with its device profile and CPU; its host costs for its framework.
[[nodiscard]] RunArguments run_of_row(const RunArguments& run, const std::string& gpu, const std::string& framework,
                                      const std::string& version);

/// Calibrates the card and the host of a scenario with the rows measured on the card, assuming one machine regardless
/// of their run. Rows of `model` estimate the predictor's error on it. Adds doubts, and the absence of rows on the
/// card, to the warnings of the framework profile. Throws Error{usage} if none of the card's rows can be predicted.
void anchor_on(Scenario& scenario, std::span<const Measurement> rows, const std::string& model, const RunArguments& run,
               const ShapeBindings& dims);

}  // namespace ftax::scenario
