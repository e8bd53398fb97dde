#pragma once

#include <Eigen/Core>
#include <array>
#include <functional>
#include <span>
#include <string_view>

#include "ftax/factors.hpp"
#include "predictors/host/host_costs.hpp"

/// One estimator for what a handful of measured rows says about factors of a model: of hosts and devices (anchors) and
/// of campaigns of architecture search.
namespace ftax {

/// Rows seen through log-factors θ: returns log(predicted / measured) of each row at θ and, where `slopes` is not null,
/// fills its derivatives (a row per measured row, a column per factor).
using LogRows = std::function<Eigen::VectorXd(const Eigen::VectorXd& at, Eigen::MatrixXd* slopes)>;

struct NormalBelief {
    Eigen::VectorXd mean;
    Eigen::MatrixXd covariance;
};

/// A maximum of the posterior and the normal distribution around it.
struct PosteriorMaximum {
    NormalBelief belief;
    double cost = 0;            ///< negative log posterior, up to a constant
    Eigen::VectorXd residuals;  ///< log(predicted / measured) there
    double determined = 0;      ///< how many of the factors the rows determine: the trace of the data's share
};

/// Descends from `start` to the nearest maximum of the posterior by Gauss-Newton with damping (Levenberg-Marquardt).
/// Residuals count by soft L1 in units of `row_log_stddev`: a row that something disturbed pulls, but does not decide.
/// `prior.covariance` must be positive definite.
/// Source: Nocedal and Wright, "Numerical Optimization", 2006, section 10.3; the covariance is that of the Laplace
/// approximation.
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

/// One of the independent things that an interval allows for.
struct Component {
    std::string_view name;  ///< for messages; static storage
    double log_stddev = 0;  ///< what it adds to the logarithm of the latency
};

/// Finds the widest component of a latency which the host decides to `host_share` (0 to 1), spends `call_share` of its
/// host time in calls (the second scalar) and `class_s` of its device time by class of kernels.
[[nodiscard]] Component widest_component(const HostCosts& costs, double host_share, double call_share,
                                         const DeviceFactors& factors, const std::array<double, factor_count>& class_s,
                                         double extrapolation_stddev);

}  // namespace ftax
