#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/scenario/scenario.hpp"

namespace ftax::scenario {

/// Parses "12.3ms", "800us" or "1.2s"; returns nullopt unless it is a positive time with a unit.
[[nodiscard]] std::optional<double> parse_duration(std::string_view text);

/// Returns a sentence on the deviation of a measured latency from the prediction, and on the prediction with it as an
/// anchor.
[[nodiscard]] std::string explain_measured(const Graph& graph, const ModelArguments& model, const RunArguments& run,
                                           std::optional<std::int64_t> batch, const Prediction& predicted,
                                           double measured_s);

}  // namespace ftax::scenario
