#pragma once

#include <string>
#include <vector>

#include "ftax/measurement.hpp"
#include "src/io/csv.hpp"

namespace ftax {

/// Measurements of a file beside the table they were read from. `rows[i]` belongs to row i of the table; where
/// `problems[i]` is not empty it says why that row cannot be used, and `rows[i]` holds only what could be read.
template <class Row>
struct MeasurementFile {
    CsvTable table;
    std::vector<Row> rows;
    std::vector<std::string> problems;
};

/// Whether a table holds operators (a column `op`) rather than whole models.
[[nodiscard]] bool holds_operators(const CsvTable& table);
/// Whether a table holds runs of language models (columns `isl` and `osl`).
[[nodiscard]] bool holds_language_models(const CsvTable& table);

/// Read measurement rows (columns: docs/formats.md), in any order of columns, other columns ignored.
/// A row whose values cannot be used is kept with its problem. Throws Error{profile} naming a missing column.
[[nodiscard]] MeasurementFile<Measurement> read_model_measurements(CsvTable table);
[[nodiscard]] MeasurementFile<OperatorMeasurement> read_operator_measurements(CsvTable table);
[[nodiscard]] MeasurementFile<LanguageMeasurement> read_language_measurements(CsvTable table);

}  // namespace ftax
