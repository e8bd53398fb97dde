#pragma once

#include "src/report/columns.hpp"
#include "src/report/prediction_report.hpp"

namespace ftax::report {

/// Selections of the columns for a table, a page or JSON; tables and pages omit negligible hypotheses.
[[nodiscard]] Grid diagnosis_grid(const PredictionReport& report, std::string_view keys, double least_share = 0.01);
[[nodiscard]] Grid advice_grid(const PredictionReport& report, std::string_view keys);

/// Both as sections of a page; empty without.
[[nodiscard]] std::string what_next_sections(const PredictionReport& report);

}  // namespace ftax::report
