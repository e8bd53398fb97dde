#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/nas/columns.hpp"
#include "ftax/framework.hpp"

namespace ftax::nas_study {

/// Spearman's rank correlation; ties get their mean rank.
[[nodiscard]] double spearman(std::span<const double> a, std::span<const double> b);

/// How well one column is predicted, without samples and with ten, and how well two naive counts and the rows
/// themselves rank it.
struct Score {
    std::string space, device;
    std::int64_t batch = 1;
    double spearman_0 = 0, mape_0 = 0;
    double spearman_10 = 0, mape_10 = 0;  ///< means over draws of ten samples; the samples are not scored
    double spearman_operators = 0, spearman_flops = 0;
    double spearman_additive = 0;  ///< of additive_spearman(), with three quarters of the rows as samples
};

/// Scores one column with the profile that the device and the framework have.
[[nodiscard]] Score score(const Column& column, const FrameworkProfile& framework);

[[nodiscard]] std::string ledger_csv(std::span<const Score> all, std::span<const Score> left_out);
[[nodiscard]] std::string ledger_markdown(std::span<const Score> all, std::span<const Score> left_out);

}  // namespace ftax::nas_study
