#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ftax/graph.hpp"
#include "ftax/predict.hpp"
#include "src/report/columns.hpp"
#include "src/report/prediction_report.hpp"

/// The launches of a prediction of `graph` (Predictor::graph).
namespace ftax::report {

/// Columns of a table of these, whose first column has this title.
[[nodiscard]] Columns<Share> share_columns(std::string_view title, const std::vector<Share>& shares);

/// Sums the launches of a prediction by the name that `group` returns for each index; sorted by name.
[[nodiscard]] std::vector<Share> sum_by_name(const std::vector<OpPrediction>& launches,
                                             const std::function<std::string(std::size_t)>& group);

/// Sums the launches of a prediction of `graph` (Predictor::graph) by the kind of their operator; largest first, by the
/// larger of host and device time. The forward call itself is listed as "forward".
[[nodiscard]] std::vector<Share> breakdown(const Graph& graph, const std::vector<OpPrediction>& launches);

[[nodiscard]] const Columns<KernelDetail>& kernel_columns();
/// Refer to the graph.
[[nodiscard]] Columns<OpPrediction> launch_columns(const Graph& graph);

/// Totals by kernel class, and the ten launches with the largest host or device time, each with its longest kernel.
[[nodiscard]] std::string launches_summary(const Graph& graph, const Explanation& explanation, Style style);
/// Every launch, in order.
[[nodiscard]] std::string launches_table(const Graph& graph, const Explanation& explanation, Style style);
[[nodiscard]] std::string launches_json(const Graph& graph, const Explanation& explanation, const std::string& verdict,
                                        const std::vector<std::string>& warnings);
[[nodiscard]] std::string launches_csv(const Graph& graph, const Explanation& explanation);

/// Writes the simulated timeline of a prediction as Chrome's trace events, which ui.perfetto.dev and
/// chrome://tracing show: one row for the host, one for the device, a flow arrow from each launch to its kernels.
/// `header` describes the prediction, with its row as the last one; its launches refer to `graph` (Predictor::graph).
/// Source: "Trace Event Format", Google, 2016: phases X (duration), s and f (flow), M (names); times in microseconds.
[[nodiscard]] std::string timeline_trace(const PredictionReport& header, const Graph& graph,
                                         const Explanation& explanation);

}  // namespace ftax::report
