#pragma once

#include <optional>
#include <string_view>

#include "src/scenario/scenario.hpp"

namespace ftax::scenario {

/// Parses "12.3ms", "800us" or "1.2s"; returns nullopt unless it is a positive time with a unit.
[[nodiscard]] std::optional<double> parse_duration(std::string_view text);

/// Ranks what may explain the measured rows of a report, the most likely first, and sets its first line. Causes that
/// change no latency are left out. Does nothing without a measured row.
void diagnose(const Graph& graph, const ModelArguments& model, const RunArguments& run,
              report::PredictionReport& report);

}  // namespace ftax::scenario
