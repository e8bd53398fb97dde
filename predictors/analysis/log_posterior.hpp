#pragma once

#include <Eigen/Core>
#include <functional>
#include <span>
#include <vector>

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

}  // namespace ftax
