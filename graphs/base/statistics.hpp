#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace ftax {

/// Returns the median; for an even count the mean of the two middle values. 0 for no values.
[[nodiscard]] inline double median(std::span<const double> values) {
    if (values.empty()) return 0;
    std::vector<double> sorted(values.begin(), values.end());
    std::ranges::sort(sorted);
    const std::size_t middle = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/// Returns the values that exceed the smallest by a quarter at most: repetitions of a host time, without those that
/// other load on the machine lengthened (twofold for seconds at a time on a virtual machine with an H100).
[[nodiscard]] inline std::vector<double> undisturbed(std::vector<double> values) {
    constexpr double disturbed = 1.25;
    if (!values.empty())
        std::erase_if(values, [longest = disturbed * std::ranges::min(values)](double v) { return v > longest; });
    return values;
}

/// Returns the median as an existing value; for an even count the larger of the two middle ones. Requires a value.
[[nodiscard]] inline double upper_median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// What every summary of errors states of |predicted / measured − 1|.
struct ErrorFigures {
    std::size_t rows = 0;
    double mean = 0;  ///< MAPE
    double median = 0;
    double p90 = 0;  ///< 90th percentile, linear between neighbours (NumPy's default)
};

/// Returns the figures of absolute errors; zeros without one.
[[nodiscard]] inline ErrorFigures error_figures(std::vector<double> errors) {
    if (errors.empty()) return {};
    const double sum = std::accumulate(errors.begin(), errors.end(), 0.0);
    std::ranges::sort(errors);
    const double position = 0.9 * static_cast<double>(errors.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const double above = errors[std::min(below + 1, errors.size() - 1)];
    return {errors.size(), sum / static_cast<double>(errors.size()), median(errors),
            errors[below] + (position - static_cast<double>(below)) * (above - errors[below])};
}

/// Returns the quantile for a share from 0 to 1, rounded down to an existing value. Requires a value.
[[nodiscard]] inline double quantile(std::vector<double> values, double share) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

}  // namespace ftax
