#pragma once

namespace ftax {

/// A positive quantity whose logarithm is normally distributed.
struct LogNormal {
    double median = 0;
    double log_stddev = 0;  ///< 0: certain
};

/// Quantile of the larger of two independent quantities: x with P(a <= x) P(b <= x) = Φ(`deviate`), Φ the distribution
/// function of the standard normal distribution.
[[nodiscard]] double quantile_of_maximum(const LogNormal& a, const LogNormal& b, double deviate);

}  // namespace ftax
