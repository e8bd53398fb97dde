#pragma once

#include <string>

#include "src/report/prediction_report.hpp"

namespace ftax::report {

/// Writes the simulated timeline of a prediction as Chrome's trace events, which ui.perfetto.dev and
/// chrome://tracing show: one row for the host, one for the device, a flow arrow from each launch to its kernels.
/// `header` says what the prediction is of and holds its row last; its launches count in `graph` (Predictor::graph).
/// Source: "Trace Event Format", Google, 2016: phases X (duration), s and f (flow), M (names); times in microseconds.
[[nodiscard]] std::string timeline_trace(const PredictionReport& header, const Graph& graph,
                                         const Explanation& explanation);

}  // namespace ftax::report
