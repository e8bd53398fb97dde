#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ftax/generate.hpp"
#include "src/report/choice.hpp"
#include "src/report/prediction_report.hpp"

namespace ftax::report {

/// One combination at one batch.
struct GenerationRow : Choice {
    std::size_t model = 0;  ///< of the generators, which one
    Generation generation;
    DecodeCrossover crossover;
    std::optional<double> exchange_share;       ///< of a step's device time, in which the cards exchange sums
    std::optional<std::int64_t> largest_batch;  ///< where it was asked for
};

/// What a language model's text takes, with all it rests on.
struct GenerationReport {
    PredictionReport run;             ///< without rows: model, device, framework of the row that pages explain
    std::vector<GenerationRow> rows;  ///< the best first, or batch by batch
    Ranking ranking;
};

/// The row that notes and pages explain: the best of all, or of the last batch where batches are not ranked.
[[nodiscard]] const GenerationRow& shown(const GenerationReport& report);

/// Refer to the report.
[[nodiscard]] Columns<GenerationRow> generation_columns(const GenerationReport& report);
[[nodiscard]] std::string to_table(const GenerationReport& report, Style style);
/// Schema: docs/formats.md.
[[nodiscard]] std::string to_json(const GenerationReport& report);
[[nodiscard]] std::string to_csv(const GenerationReport& report);

}  // namespace ftax::report
