#pragma once

#include <array>
#include <span>
#include <string>

#include "ftax/factors.hpp"

namespace ftax::folds {

/// Error of one row that the fit has not seen.
struct Residual {
    std::string card;
    std::string model;                         ///< rows of one are averaged: they share what is wrong about it
    std::array<double, factor_count> share{};  ///< of its device time by class of kernels; that of the card is 1
    double log_error = 0;                      ///< log(measured / predicted)
};

/// Standard deviations of the log-factors of the classes between cards: log_error = Σ share · factor(card) + noise.
/// Source: empirical Bayes by expectation maximisation; Dempster, Laird and Rubin, J. Royal Stat. Soc. B 39 (1977),
/// section 4.5. Classes that few cards tell about stay near the prior guess of 0.15.
[[nodiscard]] std::array<double, factor_count> class_spreads(std::span<const Residual> rows);

}  // namespace ftax::folds
