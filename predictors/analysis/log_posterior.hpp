#pragma once

#include <Eigen/Core>
#include <array>
#include <functional>
#include <span>

#include "ftax/factors.hpp"
#include "ftax/predict.hpp"
#include "predictors/host/host_costs.hpp"

/// Estimator of model factors from a handful of measured rows: anchors of hosts and devices, search campaigns.
namespace ftax {

constexpr double square(double x) {
    return x * x;
}

/// Rows as a function of log-factors θ: returns log(predicted / measured) of each row at θ and, if `slopes` is not
/// null, fills in the derivatives (a row per measured row, a column per factor).
using LogRows = std::function<Eigen::VectorXd(const Eigen::VectorXd& at, Eigen::MatrixXd* slopes)>;

struct NormalBelief {
    Eigen::VectorXd mean;
    Eigen::MatrixXd covariance;
};

/// A maximum of the posterior and the normal distribution around it.
struct PosteriorMaximum {
    NormalBelief belief;
    double cost = 0;            ///< negative log posterior, up to a constant
    Eigen::VectorXd residuals;  ///< log(predicted / measured) at the maximum
    double determined = 0;      ///< effective number of factors determined by the rows: the trace of the data's share
};

/// Descends from `start` to the nearest maximum of the posterior by Gauss-Newton with damping (Levenberg-Marquardt).
/// Residuals have a soft L1 loss in units of `row_log_stddev`, which limits the influence of disturbed rows.
/// `prior.covariance` must be positive definite; the result's is that of the Laplace approximation.
/// Source: Nocedal and Wright, "Numerical Optimization", 2006, section 10.3.
[[nodiscard]] PosteriorMaximum maximise_posterior(const NormalBelief& prior, const LogRows& rows,
                                                  std::span<const double> row_log_stddev, Eigen::VectorXd start);

/// A positive quantity whose logarithm is normally distributed.
struct LogNormal {
    double median = 0;
    double log_stddev = 0;  ///< 0: certain
};

/// Quantile of the larger of two independent quantities: x with P(a <= x) P(b <= x) = Φ(`deviate`), Φ the distribution
/// function of the standard normal distribution.
[[nodiscard]] double quantile_of_maximum(const LogNormal& a, const LogNormal& b, double deviate);

/// Contributions to an interval, of the model's uncertainties and the classes of kernels; zeros come last, unnamed.
using Components = std::array<Component, factor_count + 6>;

/// Returns the components of a latency with sensitivity `host_share` (0 to 1) to the host, share `call_share` of host
/// time in calls (the second scalar) and device time `class_s` by kernel class.
[[nodiscard]] Components components(const HostCosts& costs, double host_share, double call_share,
                                    const DeviceFactors& factors, const std::array<double, factor_count>& class_s,
                                    double extrapolation_stddev, double evidence_stddev);

}  // namespace ftax
