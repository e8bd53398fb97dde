#include "calibration/fit/log_fit.hpp"

#include <ceres/ceres.h>
#include <ceres/normal_prior.h>

#include <algorithm>
#include <random>
#include <set>

namespace ftax::fit {
namespace {

/// Fits all unknowns of a block but those at these places.
void hold(ceres::Problem& problem, std::vector<double>& block, const std::vector<int>& constant) {
    double* values = block.data();
    problem.SetManifold(values, nullptr);
    problem.SetParameterBlockVariable(values);
    if (constant.size() == block.size()) {
        problem.SetParameterBlockConstant(values);
    } else if (!constant.empty()) {
        problem.SetManifold(values, new ceres::SubsetManifold(static_cast<int>(block.size()), constant));
    }
}

std::vector<int> fixed_or_at_bound(const LogFit::Block& unknowns, const std::vector<double>& logs) {
    constexpr double at_bound = 1e-6;
    std::vector<int> places;
    for (std::size_t i = 0; i < unknowns.size(); ++i) {
        const Unknown& u = unknowns[i];
        if (u.fixed || logs[i] < std::log(u.lower) + at_bound || logs[i] > std::log(u.upper) - at_bound)
            places.push_back(static_cast<int>(i));
    }
    return places;
}

void scatter(std::vector<std::vector<double>>& logs, const std::vector<LogFit::Block>& blocks, std::mt19937& random) {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        for (std::size_t i = 0; i < blocks[b].size(); ++i) {
            const Unknown& u = blocks[b][i];
            if (u.fixed) continue;
            const double width = u.prior_log_stddev > 0 ? u.prior_log_stddev : 0.5;
            const double moved = logs[b][i] + std::normal_distribution<>(0, width)(random);
            logs[b][i] = std::clamp(moved, std::log(u.lower), std::log(u.upper));
        }
    }
}

/// Ceres cuts a step short that leads beyond a bound, in all unknowns alike, and may stop where the others could still
/// gain: those go on without what is at a bound. `fixed` holds the places that stay, by block of those that are `used`.
ceres::Solver::Summary solve_between_bounds(ceres::Problem& problem, const ceres::Solver::Options& options,
                                            const std::vector<LogFit::Block>& blocks, const std::set<std::size_t>& used,
                                            const std::vector<std::vector<int>>& fixed,
                                            std::vector<std::vector<double>>& logs) {
    ceres::Solver::Summary solved;
    ceres::Solve(options, &problem, &solved);
    auto held = fixed;
    for (bool more = true; more;) {
        more = false;
        for (const std::size_t b : used) {
            std::vector<int> constant = fixed_or_at_bound(blocks[b], logs[b]);
            if (constant == held[b]) continue;
            hold(problem, logs[b], constant);
            held[b] = std::move(constant);
            more = true;
        }
        if (more) ceres::Solve(options, &problem, &solved);
    }
    for (const std::size_t b : used) hold(problem, logs[b], fixed[b]);
    return solved;
}

}  // namespace

/// log(model / measured) / stddev with forward differences of the logarithms; fixed unknowns have none.
class LogFit::Residual final : public ceres::CostFunction {
  public:
    Residual(const Row& row, const std::vector<Block>& blocks, double log_stddev)
        : row_(row), blocks_(blocks), log_stddev_(log_stddev) {
        set_num_residuals(1);
        for (const std::size_t b : row.blocks)
            if (!blocks[b].empty()) mutable_parameter_block_sizes()->push_back(static_cast<int>(blocks[b].size()));
    }

    bool Evaluate(double const* const* log_values, double* residual, double** derivatives) const override {
        constexpr double step = 1e-6;
        const double factor = std::exp(step);
        std::vector<std::vector<double>> values;
        std::vector<const double*> pointers;
        for (const std::size_t b : row_.blocks) {
            auto& of_block = values.emplace_back(blocks_[b].size());
            for (std::size_t i = 0; i < of_block.size(); ++i) of_block[i] = std::exp((*log_values)[i]);
            if (!of_block.empty()) ++log_values;
            pointers.push_back(of_block.data());
        }
        const double log_model = std::log(row_.model(pointers.data()));
        residual[0] = (log_model - row_.log_measured) / log_stddev_;
        if (!derivatives) return true;
        for (std::size_t b = 0; b < values.size(); ++b) {
            if (values[b].empty()) continue;
            double* of_block = *derivatives++;
            if (!of_block) continue;
            for (std::size_t i = 0; i < values[b].size(); ++i) {
                of_block[i] = 0;
                if (blocks_[row_.blocks[b]][i].fixed) continue;
                const double at = std::exchange(values[b][i], values[b][i] * factor);
                of_block[i] = (std::log(row_.model(pointers.data())) - log_model) / (step * log_stddev_);
                values[b][i] = at;
            }
        }
        return true;
    }

  private:
    const Row& row_;
    const std::vector<Block>& blocks_;
    double log_stddev_;
};

std::size_t LogFit::add_block(Block block) {
    blocks_.push_back(std::move(block));
    return blocks_.size() - 1;
}

bool LogFit::solve() {
    std::vector<std::vector<double>> current;  // logarithms of the values
    for (const Block& block : blocks_) {
        auto& logs = current.emplace_back();
        for (const Unknown& u : block) logs.push_back(std::log(u.value));
    }
    const auto centre = current;

    ceres::Problem problem;      // owns what is added to it
    std::set<std::size_t> used;  // blocks
    for (const Row& row : rows_) {
        std::vector<double*> pointers;
        for (const std::size_t b : row.blocks) {
            if (blocks_[b].empty()) continue;
            pointers.push_back(current[b].data());
            used.insert(b);
        }
        problem.AddResidualBlock(new Residual(row, blocks_, options_.row_log_stddev), new ceres::SoftLOneLoss(1),
                                 pointers);
    }
    std::vector<std::vector<int>> fixed(blocks_.size());
    for (const std::size_t b : used) {
        const auto size = static_cast<Eigen::Index>(blocks_[b].size());
        Eigen::VectorXd weights = Eigen::VectorXd::Zero(size);  // weights of the priors; 0 for none
        for (int i = 0; i < size; ++i) {
            const Unknown& u = blocks_[b][static_cast<std::size_t>(i)];
            if (u.fixed) {
                fixed[b].push_back(i);
                continue;
            }
            problem.SetParameterLowerBound(current[b].data(), i, std::log(u.lower));
            problem.SetParameterUpperBound(current[b].data(), i, std::log(u.upper));
            if (u.prior_log_stddev > 0) weights[i] = 1 / u.prior_log_stddev;
        }
        const Eigen::Map<const Eigen::VectorXd> expected(centre[b].data(), size);
        problem.AddResidualBlock(new ceres::NormalPrior(weights.asDiagonal(), expected), nullptr, current[b].data());
        hold(problem, current[b], fixed[b]);
    }
    ceres::Solver::Options solver;
    solver.linear_solver_type = ceres::DENSE_NORMAL_CHOLESKY;
    solver.max_num_iterations = options_.iterations;
    solver.logging_type = ceres::SILENT;
    solver.function_tolerance = 1e-7;

    double cost = 0;
    bool converged = false;
    auto best = current;
    std::mt19937 random(1);
    for (int start = 0; start < std::max(1, options_.starts); ++start) {
        auto from = centre;
        if (start > 0) scatter(from, blocks_, random);
        for (std::size_t b = 0; b < current.size(); ++b) std::copy(from[b].begin(), from[b].end(), current[b].begin());
        const auto solved = solve_between_bounds(problem, solver, blocks_, used, fixed, current);
        if (start > 0 && !(solved.final_cost < cost)) continue;
        cost = solved.final_cost;
        converged = solved.termination_type == ceres::CONVERGENCE;
        best = current;
    }
    for (std::size_t b = 0; b < current.size(); ++b) std::copy(best[b].begin(), best[b].end(), current[b].begin());

    ceres::Covariance::Options covariance_options;
    covariance_options.algorithm_type = ceres::DENSE_SVD;
    covariance_options.null_space_rank = -1;
    ceres::Covariance covariance(covariance_options);
    std::vector<std::pair<const double*, const double*>> wanted;
    for (const std::size_t b : used) {
        const double* values = current[b].data();
        if (!problem.IsParameterBlockConstant(values)) wanted.emplace_back(values, values);
    }
    const bool estimated = !wanted.empty() && covariance.Compute(wanted, &problem);
    for (std::size_t b = 0; b < current.size(); ++b) {
        const std::size_t size = blocks_[b].size();
        std::vector<double> matrix(size * size, 0);
        if (estimated && used.contains(b) && !problem.IsParameterBlockConstant(current[b].data()))
            covariance.GetCovarianceBlock(current[b].data(), current[b].data(), matrix.data());
        for (std::size_t i = 0; i < size; ++i) {
            Unknown& u = blocks_[b][i];
            // exp(log(x)) may leave a bound by a bit.
            if (!u.fixed) u.value = std::clamp(std::exp(current[b][i]), u.lower, u.upper);
            u.log_shift = std::abs(current[b][i] - centre[b][i]);
            u.relative_stddev = std::sqrt(std::max(0.0, matrix[i * size + i]));
        }
    }
    return converged;
}

}  // namespace ftax::fit
