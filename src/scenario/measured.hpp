#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/scenario/scenario.hpp"

namespace ftax::scenario {

/// Parses "12.3ms", "800us" or "1.2s"; nullopt for what is no positive time with a unit.
[[nodiscard]] std::optional<double> parse_duration(std::string_view text);

/// Says how far a measured latency is from the predicted one, and what the prediction is once it is known, as an
/// anchor.
[[nodiscard]] std::string explain_measured(const Graph& graph, const ModelArguments& model, const RunArguments& run,
                                           std::optional<std::int64_t> batch, const Prediction& predicted,
                                           double measured_s);

}  // namespace ftax::scenario
