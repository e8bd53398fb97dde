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
    std::size_t model = 0;  ///< index of the generator
    Generation generation;
    DecodeCrossover crossover;
    std::optional<double> exchange_share;       ///< share of a step's device time spent in all-reduce
    std::optional<std::int64_t> largest_batch;  ///< if requested
};

/// Time and memory of text generation, with provenance.
struct GenerationReport {
    PredictionReport run;             ///< without rows: model, device, framework of the row explained on pages
    std::vector<GenerationRow> rows;  ///< best first, or batch by batch
    Ranking ranking;
};

/// Returns the row explained in notes and pages: the best one, or the best of the last batch if batches are not ranked.
[[nodiscard]] const GenerationRow& shown(const GenerationReport& report);

/// Refer to the report.
[[nodiscard]] Columns<GenerationRow> generation_columns(const GenerationReport& report);
[[nodiscard]] std::string to_table(const GenerationReport& report, Style style);
[[nodiscard]] std::string to_json(const GenerationReport& report);
[[nodiscard]] std::string to_csv(const GenerationReport& report);

}  // namespace ftax::report
