#include "calibration/fit/fit_report.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/core/statistics.hpp"

namespace ftax::fit {

ErrorSummary summarize(std::string group, std::vector<double> log_errors) {
    ErrorSummary summary{.group = std::move(group), .rows = log_errors.size()};
    if (log_errors.empty()) return summary;
    summary.bias = upper_median(log_errors);
    std::vector<double> errors;
    for (const double e : log_errors) errors.push_back(std::abs(std::expm1(e)));
    std::sort(errors.begin(), errors.end());
    for (const double e : errors) summary.mean += e / static_cast<double>(errors.size());
    summary.median = upper_median(errors);
    summary.p90 = errors[errors.size() * 9 / 10];
    return summary;
}

}  // namespace ftax::fit
