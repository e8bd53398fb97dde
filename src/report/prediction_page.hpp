#pragma once

#include <string>

#include "src/report/prediction_report.hpp"

namespace ftax::report {

/// Writes one self-contained HTML page: the latency chart, every prediction, the launches of `last`, the
/// explanation of its last row, in a table that sorts by a click on a heading, warnings, and the profiles all of it
/// rests on.
[[nodiscard]] std::string prediction_page(const PredictionReport& report, const Graph& graph, const Explanation& last);

}  // namespace ftax::report
