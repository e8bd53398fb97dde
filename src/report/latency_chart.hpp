#pragma once

#include "src/report/chart.hpp"
#include "src/report/prediction_report.hpp"

namespace ftax::report {

/// Draws latency against batch: prediction with its interval, host and device sums, measurements, the crossovers.
/// Rows without a batch stand at 1.
[[nodiscard]] Chart latency_chart(const PredictionReport& report);

/// Adds a mark at each crossover, called `label` and its batch.
void mark_crossovers(Chart& chart, const std::vector<Crossover>& crossovers, std::string_view label);

}  // namespace ftax::report
