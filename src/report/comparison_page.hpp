#pragma once

#include <string>

#include "src/report/comparison_report.hpp"

namespace ftax::report {

/// Writes the page of `ftax compare`: latency against batch of every pair, the numbers of all in a table that sorts,
/// and what was not compared, with the reason. There must be a prediction.
[[nodiscard]] std::string comparison_page(const ComparisonReport& report);

}  // namespace ftax::report
