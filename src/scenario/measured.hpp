#pragma once

#include <optional>
#include <string_view>

#include "src/scenario/scenario.hpp"

namespace ftax::scenario {

/// Ranks what may explain the measured rows of a report, the most likely first, and sets its first line. Causes that
/// change no latency are left out. Does nothing without a measured row.
void diagnose(const Graph& graph, const ModelArguments& model, const RunArguments& run,
              report::PredictionReport& report);

}  // namespace ftax::scenario
