#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/io/csv.hpp"
#include "src/report/validation_report.hpp"

namespace ftax::report {

/// What a validation was given; empty where it was not.
struct ValidationSource {
    std::string rows, anchor, device_profile;
};

/// Writes the page of `ftax validate`: predicted against measured, errors by each column that says what was measured,
/// the rows furthest off, and those without a prediction. `rows` are those of `table`, in order.
[[nodiscard]] std::string validation_page(const ValidationSource& source, const CsvTable& table,
                                          std::span<const ValidatedRow> rows, const ValidationReport& report);

}  // namespace ftax::report
