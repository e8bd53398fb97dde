#include "calibration/fit/fit_report.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ftax::fit {

ErrorSummary summarize(std::string group, std::vector<double> log_errors) {
    ErrorSummary summary{.group = std::move(group), .rows = log_errors.size()};
    if (log_errors.empty()) return summary;
    std::sort(log_errors.begin(), log_errors.end());
    summary.bias = log_errors[log_errors.size() / 2];
    std::vector<double> errors;
    for (const double e : log_errors) errors.push_back(std::abs(std::expm1(e)));
    std::sort(errors.begin(), errors.end());
    for (const double e : errors) summary.mean += e / static_cast<double>(errors.size());
    summary.median = errors[errors.size() / 2];
    summary.p90 = errors[errors.size() * 9 / 10];
    return summary;
}

}  // namespace ftax::fit
