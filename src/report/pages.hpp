#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ftax/predict.hpp"
#include "graphs/files/csv.hpp"
#include "src/report/comparison_report.hpp"
#include "src/report/generation_report.hpp"
#include "src/report/headroom_report.hpp"
#include "src/report/prediction_report.hpp"
#include "src/report/validation_report.hpp"

namespace ftax::report {

/// Writes one self-contained HTML page: the latency chart, every prediction, the launches of `last`, the
/// explanation of its last row, in a sortable table, warnings, and the profiles used.
[[nodiscard]] std::string prediction_page(const PredictionReport& report, const Graph& graph, const Explanation& last);

/// Writes the page of `ftax headroom`: how far each property can grow, other frameworks, and the profiles used.
[[nodiscard]] std::string headroom_page(const HeadroomReport& report, const Graph& graph);

/// Writes the page of `ftax compare`: latency over batch for every pair, all numbers in a sortable table, and skipped
/// combinations with the reason. Requires a prediction.
[[nodiscard]] std::string comparison_page(const ComparisonReport& report);

/// Writes the page of `ftax crossover`: host and device time over the batch, the crossover, the most expensive host
/// operations there, and the profiles used. `report` has the two batches around the crossover, `curve` those of the
/// chart. `graph` is the framework's graph.
[[nodiscard]] std::string crossover_page(const PredictionReport& report, const PredictionReport& curve,
                                         const Graph& graph);

/// A pass and the graph to which its explanation refers (Predictor::graph).
struct ExplainedPass {
    const Graph& graph;
    Explanation explanation;
};

/// Writes the page of `ftax generate`: times over batches, both phases of the last batch by kind, memory.
[[nodiscard]] std::string generation_page(const GenerationReport& report, const ExplainedPass& prefill,
                                          const ExplainedPass& decode);

/// Inputs of a validation; empty if not given.
struct ValidationSource {
    std::string rows, anchor, device_profile;
};

/// Writes the page of `ftax validate`: predicted against measured, errors by each descriptive column, the rows with the
/// largest errors, and those without a prediction. `rows` are those of `table`, in order.
[[nodiscard]] std::string validation_page(const ValidationSource& source, const CsvTable& table,
                                          std::span<const ValidatedRow> rows, const ValidationReport& report);

/// One card at one value of the varying dimension.
struct ExplorerCurve {
    std::vector<PredictionRow> rows;  ///< one per batch
    std::vector<Crossover> crossovers;
};

struct ExplorerCard {
    std::string name;
    std::vector<ExplorerCurve> curves;  ///< one per value
};

/// Predictions of one model over cards, one of its dimensions, and batches.
struct ExplorerReport {
    std::string model, framework, host;
    Precision precision = Precision::fp32;
    ShapeBindings dims;                ///< fixed dimensions
    std::string dimension;             ///< varying dimension; empty: none
    std::vector<std::int64_t> values;  ///< its values; a single dummy value if none varies
    std::vector<std::int64_t> batches;
    std::vector<ExplorerCard> cards;
    std::vector<std::string> warnings;
};

/// Writes one self-contained page with sliders over precomputed predictions.
[[nodiscard]] std::string explorer_page(const ExplorerReport& report);

}  // namespace ftax::report
