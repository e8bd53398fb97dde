#include "predictors/analysis/log_posterior.hpp"

#include <Eigen/Cholesky>
#include <cmath>

namespace ftax {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int most_steps = 50;
constexpr double least_gain = 1e-7;  ///< of the cost in one step

/// A residual's cost and weight under soft L1.
double soft_l1(double squared) {
    return std::sqrt(1 + squared) - 1;
}

}  // namespace

PosteriorMaximum maximise_posterior(const NormalBelief& prior, const LogRows& rows,
                                    std::span<const double> row_log_stddev, VectorXd at) {
    const Eigen::Index n = prior.mean.size();
    const MatrixXd prior_information = prior.covariance.llt().solve(MatrixXd::Identity(n, n));
    const auto precision = [&](Eigen::Index row) {
        const double stddev = row_log_stddev[static_cast<std::size_t>(row)];
        return 1 / (stddev * stddev);
    };
    const auto cost_of = [&](const VectorXd& theta, const VectorXd& residuals) {
        const VectorXd off = theta - prior.mean;
        double cost = off.dot(prior_information * off) / 2;
        for (Eigen::Index i = 0; i < residuals.size(); ++i) cost += soft_l1(residuals[i] * residuals[i] * precision(i));
        return cost;
    };

    MatrixXd slopes;
    VectorXd residuals = rows(at, &slopes);
    double cost = cost_of(at, residuals);
    double damping = 1e-4;
    MatrixXd data_information;
    const auto linearise = [&] {
        VectorXd weights(residuals.size());
        for (Eigen::Index i = 0; i < residuals.size(); ++i)
            weights[i] = precision(i) / std::sqrt(1 + residuals[i] * residuals[i] * precision(i));
        data_information = slopes.transpose() * weights.asDiagonal() * slopes;
        return VectorXd(slopes.transpose() * (weights.asDiagonal() * residuals) +
                        prior_information * (at - prior.mean));
    };
    for (int step = 0; step < most_steps; ++step) {
        const VectorXd gradient = linearise();
        bool lower = false;
        for (; damping < 1e8 && !lower; damping *= 10) {
            MatrixXd system = data_information + prior_information;
            system.diagonal() *= 1 + damping;
            const VectorXd next = at - system.llt().solve(gradient);
            const VectorXd next_residuals = rows(next, nullptr);
            const double next_cost = cost_of(next, next_residuals);
            if (!(next_cost < cost - least_gain)) continue;
            at = next;
            cost = next_cost;
            residuals = rows(at, &slopes);
            lower = true;
        }
        if (!lower) break;
        damping = std::max(damping / 1000, 1e-9);
    }
    linearise();
    const MatrixXd covariance = (data_information + prior_information).llt().solve(MatrixXd::Identity(n, n));
    return {{std::move(at), covariance}, cost, std::move(residuals), (covariance * data_information).trace()};
}

}  // namespace ftax
