#pragma once

#include "src/report/chart.hpp"
#include "src/report/prediction_report.hpp"

namespace ftax::report {

/// Draws latency against batch: prediction with its interval, host and device sums, measurements, the crossover.
/// Rows without a batch stand at 1.
[[nodiscard]] Chart latency_chart(const PredictionReport& report);

}  // namespace ftax::report
