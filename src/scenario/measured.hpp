#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/scenario/alternatives.hpp"

namespace ftax::scenario {

struct MeasuredRun {
    double latency_s = 0;
    double items = 1;                                ///< of its batch
    Prediction own{};                                ///< without a change
    std::string machine = "host", network = "card";  ///< runs of one share the error of the host, of the device
};

/// Predicts all measured runs under a change; nullopt for those that it does not apply to.
using PredictUnder = std::function<std::vector<std::optional<Prediction>>(const Change&)>;

/// Ranks what may explain measured runs of a framework, the most likely first. Causes that change no latency are left
/// out.
[[nodiscard]] std::vector<report::Hypothesis> rank_causes(std::span<const MeasuredRun> runs, std::string_view framework,
                                                          const PredictUnder& predict_under);

/// The same for the measured rows of a report; also sets its first line. Does nothing without a measured row.
void diagnose(const Graph& graph, const ModelArguments& model, const RunArguments& run,
              report::PredictionReport& report);

}  // namespace ftax::scenario
