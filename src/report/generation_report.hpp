#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ftax/generate.hpp"
#include "src/report/prediction_report.hpp"

namespace ftax::report {

/// One batch on so many cards.
struct GenerationRow {
    int cards = 1;
    Generation generation;
    DecodeCrossover crossover;
    std::optional<std::int64_t> largest_batch;  ///< where it was asked for
};

/// What a language model's text takes, with all it rests on.
struct GenerationReport {
    PredictionReport run;  ///< without rows: model, device, framework
    std::vector<GenerationRow> rows;
    std::optional<double> dollars_per_hour;  ///< of one card
};

/// Refer to the report.
[[nodiscard]] Columns<GenerationRow> generation_columns(const GenerationReport& report);
[[nodiscard]] std::string to_table(const GenerationReport& report, Style style);
/// Schema: docs/formats.md.
[[nodiscard]] std::string to_json(const GenerationReport& report);
[[nodiscard]] std::string to_csv(const GenerationReport& report);

}  // namespace ftax::report
