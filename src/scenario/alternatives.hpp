#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graphs/files/number.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "src/report/headroom_report.hpp"
#include "src/scenario/scenario.hpp"

/// Runs that differ from the user's in one thing: causes of an unexpected measurement, advice, other frameworks.
namespace ftax::scenario {

/// A row of data/changes.csv.
struct Change {
    std::string name, sentence, code;  ///< "tf32-off"; as a cause of a latency; what makes the change, empty: no advice
    double prior = 0;                  ///< as a cause, relative to that of the others; 0: none
    std::vector<std::string_view> from;                       ///< precisions that it changes; empty: any
    std::map<std::string, std::string, std::less<>> effects;  ///< {"precision", "fp32"}

    [[nodiscard]] double effect(std::string_view name, double otherwise) const;
};

/// Returns the changes of a run under this framework, first that to nothing.
[[nodiscard]] std::vector<Change> changes_of(std::string_view framework);

struct Alternative {
    std::unique_ptr<FrameworkModel> model;  ///< the changed rules; the predictor refers to them
    Predictor predictor;
};

/// Resolves the changed run by the path of every run, without its warnings. Returns nullopt if the change does not
/// apply or the changed run cannot run. `prepare`: what else is done to the resolved run, before the change.
[[nodiscard]] std::optional<Alternative> alternative(const Graph& graph, const ModelArguments& model,
                                                     const RunArguments& run, const Change& change,
                                                     const std::function<void(Scenario&)>& prepare = {});

/// Returns the three changes of a run that gain most, each at least 5 %, the best first.
[[nodiscard]] std::vector<report::Advice> advise(const Graph& graph, const ModelArguments& model,
                                                 const RunArguments& run, std::optional<std::int64_t> batch);

struct MeasuredRun {
    double latency_s = 0;
    double items = 1;                                ///< of its batch
    Prediction own{};                                ///< without a change
    std::string machine = "host", network = "card";  ///< runs of one share the error of the host, of the device
};

/// Predicts all measured runs under a change of the run; nullopt for those that it does not apply to.
using PredictUnder = std::function<std::vector<std::optional<Prediction>>(const Change&)>;

/// Ranks what may explain measured runs of a framework, the most likely first, without causes that change no latency.
[[nodiscard]] std::vector<report::Hypothesis> rank_causes(std::span<const MeasuredRun> runs, std::string_view framework,
                                                          const PredictUnder& predict_under);

/// The same for the measured rows of a report; also sets its first line. Does nothing without a measured row.
void diagnose(const Graph& graph, const ModelArguments& model, const RunArguments& run,
              report::PredictionReport& report);

/// How much more latency a larger model may take: a share, or with % in percent.
[[nodiscard]] const Quantity& budget_quantity();

/// Predicts a run under every other framework that supports it, fastest first; what does not fit comes last.
[[nodiscard]] std::vector<report::FrameworkSwitch> other_frameworks(const Graph& graph, const Predictor& predictor,
                                                                    const ModelArguments& model,
                                                                    const RunArguments& run,
                                                                    std::optional<std::int64_t> batch);

}  // namespace ftax::scenario
