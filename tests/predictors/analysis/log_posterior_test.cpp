#include "predictors/analysis/log_posterior.hpp"

#include <doctest/doctest.h>

#include <Eigen/LU>
#include <cmath>
#include <random>

#include "tests/approx.hpp"

using namespace ftax;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

/// A random problem of three correlated factors seen through linear rows.
struct Problem {
    NormalBelief prior{VectorXd::Zero(3), MatrixXd::Zero(3, 3)};
    MatrixXd slopes;
    VectorXd offsets;
    std::vector<double> stddev;

    explicit Problem(unsigned seed, double spread, Index rows = 8) : slopes(rows, 3), offsets(rows) {
        std::mt19937 random(seed);
        std::normal_distribution<> normal;
        const auto draw = [&] { return normal(random); };
        const MatrixXd root = MatrixXd::NullaryExpr(3, 3, draw);
        prior.covariance = 0.1 * (root * root.transpose() + MatrixXd::Identity(3, 3));
        prior.mean = VectorXd::NullaryExpr(3, [&] { return 0.3 * draw(); });
        slopes = MatrixXd::NullaryExpr(rows, 3, draw);
        for (Index i = 0; i < rows; ++i) stddev.push_back(0.05 * std::exp(0.3 * draw()));
        offsets = -slopes * prior.mean + VectorXd::NullaryExpr(rows, [&] { return spread * draw(); });
    }

    VectorXd operator()(const VectorXd& at, MatrixXd* out) const {
        if (out) *out = slopes;
        return slopes * at + offsets;
    }

    /// The negative log posterior as the header states it.
    [[nodiscard]] double cost(const VectorXd& at) const {
        const VectorXd off = at - prior.mean;
        double sum = off.dot(prior.covariance.inverse() * off) / 2;
        const VectorXd residuals = (*this)(at, nullptr);
        for (Index i = 0; i < residuals.size(); ++i)
            sum += std::sqrt(1 + std::pow(residuals[i] / stddev[static_cast<std::size_t>(i)], 2)) - 1;
        return sum;
    }
};

}  // namespace

TEST_CASE("the maximum of a posterior is lower than every point around it, disturbed rows or none") {
    for (unsigned seed = 1; seed <= 30; ++seed) {
        CAPTURE(seed);
        const Problem problem(seed, seed % 2 == 0 ? 0.02 : 0.8);
        const auto found = maximise_posterior(problem.prior, problem, problem.stddev, problem.prior.mean);
        const double lowest = problem.cost(found.belief.mean);
        CHECK(found.cost == approx(lowest));
        std::mt19937 random(seed);
        std::normal_distribution<> normal(0, 0.01);
        for (int i = 0; i < 50; ++i) {
            const VectorXd near = found.belief.mean + VectorXd::NullaryExpr(3, [&] { return normal(random); });
            CHECK(problem.cost(near) > lowest * (1 - 1e-4));
        }
    }
}

TEST_CASE("rows that agree update mean, variances and covariances as Bayes' rule does") {
    for (unsigned seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        const Problem problem(seed, 5e-3);  // far below a row's own noise: soft L1 is a square there
        const auto found = maximise_posterior(problem.prior, problem, problem.stddev, problem.prior.mean);
        const VectorXd weights = Eigen::Map<const VectorXd>(problem.stddev.data(), 8).cwiseAbs2().cwiseInverse();
        const MatrixXd information = problem.prior.covariance.inverse().eval() +
                                     problem.slopes.transpose() * weights.asDiagonal() * problem.slopes;
        const MatrixXd covariance = information.inverse();
        const VectorXd mean = covariance * (problem.prior.covariance.inverse() * problem.prior.mean -
                                            problem.slopes.transpose() * (weights.asDiagonal() * problem.offsets));
        CHECK((found.belief.mean - mean).norm() < 0.05 * (mean - problem.prior.mean).norm() + 1e-5);
        CHECK((found.belief.covariance - covariance).norm() < 0.03 * covariance.norm());
        CHECK(found.determined ==
              approx((covariance * problem.slopes.transpose() * weights.asDiagonal() * problem.slopes).trace())
                  .epsilon(0.02));
    }
}

TEST_CASE("one disturbed row among many moves the maximum by less than its share of the mean") {
    Problem problem(3, 0, 20);
    const VectorXd before = maximise_posterior(problem.prior, problem, problem.stddev, problem.prior.mean).belief.mean;
    problem.offsets[4] += 100 * problem.stddev[4];
    const VectorXd after = maximise_posterior(problem.prior, problem, problem.stddev, problem.prior.mean).belief.mean;
    problem.offsets[4] += 1e4 * problem.stddev[4];
    const VectorXd worse = maximise_posterior(problem.prior, problem, problem.stddev, problem.prior.mean).belief.mean;
    CHECK((after - before).norm() < 5 * problem.stddev[4]);
    CHECK((worse - before).norm() < 5 * problem.stddev[4]);
}
