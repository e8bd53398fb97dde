#include "predictors/analysis/log_posterior.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace ftax {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int most_steps = 50;
constexpr double least_gain = 1e-7;  ///< minimum reduction of the cost per step

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
        for (Eigen::Index i = 0; i < residuals.size(); ++i)  // soft L1
            cost += std::sqrt(1 + residuals[i] * residuals[i] * precision(i)) - 1;
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

double quantile_of_maximum(const LogNormal& a, const LogNormal& b, double deviate) {
    if (!(a.median > 0)) return std::exp(log_quantile(b, deviate));
    if (!(b.median > 0)) return std::exp(log_quantile(a, deviate));
    // Lower bound: the larger single quantile. Upper bound: both quantiles at the square root of the probability.
    constexpr double far = 4;
    double low = std::max(log_quantile(a, deviate), log_quantile(b, deviate));
    double high = std::max(log_quantile(a, far), log_quantile(b, far));
    const double wanted = normal_cdf(deviate);
    // If one side is certainly smaller, the result is the other's quantile.
    constexpr double certain = 1e-4;
    if (probability_below(a, low) * probability_below(b, low) > wanted * (1 - certain)) return std::exp(low);
    constexpr int halvings = 20;
    for (int i = 0; i < halvings; ++i) {
        const double middle = (low + high) / 2;
        (probability_below(a, middle) * probability_below(b, middle) < wanted ? low : high) = middle;
    }
    return std::exp((low + high) / 2);
}

Components components(const HostCosts& costs, double host_share, double call_share, const DeviceFactors& factors,
                      const std::array<double, factor_count>& class_s, double extrapolation_stddev,
                      double evidence_stddev) {
    Components all{};
    auto next = all.begin();
    const auto add = [&](std::string_view name, double log_stddev) {
        if (log_stddev > 0) *next++ = {name, log_stddev};
    };
    const double device_share = 1 - host_share;
    add("the speed of the host's CPU", host_share * (1 - call_share) * costs.scale_relative_stddev);
    add("the host's calls of its library", host_share * call_share * costs.call_relative_stddev);
    add("the model's host time", host_share * costs.model_relative_stddev);
    add("the model's device time", device_share * costs.device_relative_stddev);
    add("runs longer than any measured", device_share * extrapolation_stddev);
    add("the distance from measured rows", device_share * evidence_stddev);
    add("the card as a whole", device_share * std::sqrt(factors.covariance[0][0]));
    const double device_s = std::accumulate(class_s.begin(), class_s.end(), 0.0);
    for (std::size_t f = 1; f < factor_count; ++f) {
        if (class_s[f] == 0) continue;
        add(description_of(static_cast<Factor>(f)),
            device_share * class_s[f] / device_s * std::sqrt(factors.covariance[f][f]));
    }
    return all;
}

}  // namespace ftax
