#pragma once

#include <string>
#include <vector>

#include "ftax/measurement.hpp"
#include "graphs/files/csv.hpp"

namespace ftax {

/// Measurements of a file with their table. `rows[i]` corresponds to row i of the table; a non-empty `problems[i]`
/// explains why that row is unusable, and `rows[i]` is then incomplete.
template <class Row>
struct MeasurementFile {
    CsvTable table;
    std::vector<Row> rows;
    std::vector<std::string> problems;
    std::vector<std::size_t> alike;  ///< for each row the first that differs from it in time and line alone
};

/// Returns true if a table has operators (a column `op`) rather than whole models.
[[nodiscard]] bool holds_operators(const CsvTable& table);
/// Returns true if a table has runs of language models (columns `isl` and `osl`).
[[nodiscard]] bool holds_language_models(const CsvTable& table);

/// Read measurement rows (columns: docs/formats.md), in any order of columns, other columns ignored.
/// Unusable rows are kept with their problem. Throws Error{profile} naming a missing column.
[[nodiscard]] MeasurementFile<Measurement> read_model_measurements(CsvTable table);
[[nodiscard]] MeasurementFile<OperatorMeasurement> read_operator_measurements(CsvTable table);
[[nodiscard]] MeasurementFile<LanguageMeasurement> read_language_measurements(CsvTable table);

}  // namespace ftax
