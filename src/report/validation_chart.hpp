#pragma once

#include <span>

#include "src/io/csv.hpp"
#include "src/report/chart.hpp"
#include "src/report/validation_report.hpp"

namespace ftax::report {

/// Says what a row measured, in words: the columns that tell it from others.
[[nodiscard]] std::string identity_of(const CsvTable& table, std::size_t row);

/// Draws predicted against measured milliseconds, coloured by the first of framework, GPU, precision and operator that
/// has several values: the most frequent ones each, the others together. There must be a prediction.
[[nodiscard]] Chart validation_chart(const CsvTable& table, std::span<const ValidatedRow> rows);

}  // namespace ftax::report
