#include "calibration/crossvalidation/variance.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace ftax::folds {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// What classes without rows would have, and how many cards that guess weighs as.
constexpr double guessed_stddev = 0.15;
constexpr double guess_weight = 1;
constexpr double guessed_noise = 0.08;
constexpr int rounds = 200;

/// The rows of one card, those of a model averaged.
struct Card {
    MatrixXd shares;
    VectorXd errors;
};

std::vector<Card> cards_of(std::span<const Residual> rows) {
    struct Mean {
        VectorXd share = VectorXd::Zero(factor_count);
        double error = 0, rows = 0;
    };
    std::map<std::string, std::map<std::string, Mean>> means;
    for (const Residual& row : rows) {
        Mean& mean = means[row.card][row.model];
        mean.share += Eigen::Map<const VectorXd>(row.share.data(), factor_count);
        mean.error += row.log_error;
        mean.rows += 1;
    }
    std::vector<Card> cards;
    for (const auto& [_, models] : means) {
        Card& card = cards.emplace_back();
        card.shares.resize(static_cast<Index>(models.size()), factor_count);
        card.errors.resize(static_cast<Index>(models.size()));
        Index row = 0;
        for (const auto& [model, mean] : models) {
            card.shares.row(row) = mean.share.transpose() / mean.rows;
            card.errors[row++] = mean.error / mean.rows;
        }
    }
    return cards;
}

}  // namespace

std::array<double, factor_count> class_spreads(std::span<const Residual> rows) {
    const std::vector<Card> cards = cards_of(rows);
    VectorXd variance = VectorXd::Constant(factor_count, guessed_stddev * guessed_stddev);
    double noise = guessed_noise * guessed_noise;
    for (int round = 0; round < rounds && !cards.empty(); ++round) {
        VectorXd squares = VectorXd::Constant(factor_count, guess_weight * guessed_stddev * guessed_stddev);
        double noise_squares = guessed_noise * guessed_noise;
        double count = 1;
        for (const Card& card : cards) {
            MatrixXd information = card.shares.transpose() * card.shares / noise;
            information.diagonal() += variance.cwiseInverse();
            const MatrixXd covariance = information.llt().solve(MatrixXd::Identity(factor_count, factor_count));
            const VectorXd mean = covariance * (card.shares.transpose() * card.errors) / noise;
            squares += mean.cwiseAbs2() + covariance.diagonal();
            noise_squares += (card.errors - card.shares * mean).squaredNorm() +
                             (card.shares * covariance).cwiseProduct(card.shares).sum();
            count += static_cast<double>(card.errors.size());
        }
        variance = squares / (static_cast<double>(cards.size()) + guess_weight);
        noise = noise_squares / count;
    }
    std::array<double, factor_count> stddev{};
    for (std::size_t f = 0; f < factor_count; ++f) stddev[f] = std::sqrt(variance[static_cast<Index>(f)]);
    return stddev;
}

}  // namespace ftax::folds
