#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ftax/predict.hpp"
#include "src/io/csv.hpp"
#include "src/report/comparison_report.hpp"
#include "src/report/generation_report.hpp"
#include "src/report/prediction_report.hpp"
#include "src/report/validation_report.hpp"

namespace ftax::report {

/// Writes one self-contained HTML page: the latency chart, every prediction, the launches of `last`, the
/// explanation of its last row, in a table that sorts by a click on a heading, warnings, and the profiles all of it
/// rests on.
[[nodiscard]] std::string prediction_page(const PredictionReport& report, const Graph& graph, const Explanation& last);

/// Writes the page of `ftax compare`: latency against batch of every pair, the numbers of all in a table that sorts,
/// and what was not compared, with the reason. There must be a prediction.
[[nodiscard]] std::string comparison_page(const ComparisonReport& report);

/// Writes the page of `ftax crossover`: the curve of both sides over the batch, where they meet, what costs the host
/// most there, and what it rests on. `report` holds the two batches beside the crossover, `curve` those of the chart.
/// `graph` is what the framework runs.
[[nodiscard]] std::string crossover_page(const PredictionReport& report, const PredictionReport& curve,
                                         const Graph& graph);

/// A pass and the graph in which its explanation counts (Predictor::graph).
struct ExplainedPass {
    const Graph& graph;
    Explanation explanation;
};

/// The page of `ftax generate`: times over batches, both phases of the last batch kind by kind, memory.
[[nodiscard]] std::string generation_page(const GenerationReport& report, const ExplainedPass& prefill,
                                          const ExplainedPass& decode);

/// What a validation was given; empty where it was not.
struct ValidationSource {
    std::string rows, anchor, device_profile;
};

/// Writes the page of `ftax validate`: predicted against measured, errors by each column that says what was measured,
/// the rows furthest off, and those without a prediction. `rows` are those of `table`, in order.
[[nodiscard]] std::string validation_page(const ValidationSource& source, const CsvTable& table,
                                          std::span<const ValidatedRow> rows, const ValidationReport& report);

/// One card at one value of the dimension that varies.
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
    ShapeBindings dims;                ///< that stay
    std::string dimension;             ///< that varies; empty for none
    std::vector<std::int64_t> values;  ///< of it; one that counts for nothing where none varies
    std::vector<std::int64_t> batches;
    std::vector<ExplorerCard> cards;
    std::vector<std::string> warnings;
};

/// One self-contained page with sliders over the predictions, none of which it calculates itself.
[[nodiscard]] std::string explorer_page(const ExplorerReport& report);

}  // namespace ftax::report
