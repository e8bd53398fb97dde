#include "predictors/analysis/log_normal.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ftax {
namespace {

double normal_cdf(double x) {
    return std::erfc(-x / std::numbers::sqrt2) / 2;
}

/// P(q <= exp(log_x)).
double probability_below(const LogNormal& q, double log_x) {
    const double off = log_x - std::log(q.median);
    if (q.log_stddev == 0) return off < 0 ? 0 : 1;
    return normal_cdf(off / q.log_stddev);
}

double log_quantile(const LogNormal& q, double deviate) {
    return std::log(q.median) + deviate * q.log_stddev;
}

}  // namespace

double quantile_of_maximum(const LogNormal& a, const LogNormal& b, double deviate) {
    if (!(a.median > 0)) return std::exp(log_quantile(b, deviate));
    if (!(b.median > 0)) return std::exp(log_quantile(a, deviate));
    // The quantile lies above those of either side, and below where both are certain to that square root.
    constexpr double far = 4;
    double low = std::max(log_quantile(a, deviate), log_quantile(b, deviate));
    double high = std::max(log_quantile(a, far), log_quantile(b, far));
    const double wanted = normal_cdf(deviate);
    // Where one side is certain to be the smaller, the other's quantile is the answer.
    constexpr double certain = 1e-4;
    if (probability_below(a, low) * probability_below(b, low) > wanted * (1 - certain)) return std::exp(low);
    constexpr int halvings = 20;
    for (int i = 0; i < halvings; ++i) {
        const double middle = (low + high) / 2;
        (probability_below(a, middle) * probability_below(b, middle) < wanted ? low : high) = middle;
    }
    return std::exp((low + high) / 2);
}

}  // namespace ftax
