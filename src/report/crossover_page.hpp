#pragma once

#include <string>

#include "src/report/prediction_report.hpp"

namespace ftax::report {

/// Writes the page of `ftax crossover`: the curve of both sides over the batch, where they meet, what costs the host
/// most there, and what it rests on. `report` holds the two batches beside the crossover, `curve` those of the chart.
/// `graph` is what the framework runs.
[[nodiscard]] std::string crossover_page(const PredictionReport& report, const PredictionReport& curve,
                                         const Graph& graph);

}  // namespace ftax::report
