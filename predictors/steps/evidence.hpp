#pragma once

#include <array>
#include <span>
#include <string>

#include "ftax/evidence.hpp"

namespace ftax {

/// Contributions of what was not measured to the standard deviation of log(device time). Source: `ftax_folds evidence`,
/// the errors of each file's rows where the other files are the evidence; `framework` is that of an earlier run, since
/// the file now shows none (docs/uncertainty.md). Another version, precision or generation adds nothing there.
struct EvidenceSpread {
    double kernels = 0.35, card = 0.10, framework = 0.41;
};

/// Differences of a run from a set of measured rows.
struct Distance {
    const MeasuredSet* set = nullptr;  ///< null without rows of the framework
    bool version = false, precision = false, card = false, architecture = false;
    FactorSet kernels{};       ///< classes with at least 5 % of the device time that the set lacks
    double kernels_share = 0;  ///< of the device time, in all classes that it lacks

    [[nodiscard]] double log_stddev(const EvidenceSpread& spread = {}) const;  ///< that it adds to the device time's
};

/// Returns the distance of a run from the nearest set, whose differences add least. `class_s`: the run's device time by
/// class of kernels, where `run.kernels` does not count.
[[nodiscard]] Distance distance_from(std::span<const MeasuredSet> sets, const MeasuredSet& run,
                                     const std::array<double, factor_count>& class_s);
/// `host_log_stddev`: what the uncertainty of the host's time adds to that of the latency.
[[nodiscard]] Evidence grade(const Distance& distance, double host_log_stddev);
/// "rows of torch-tensorrt in framework_tax.csv, without attention, version 8.0": the nearest rows and what they lack.
[[nodiscard]] std::string describe(const Distance& distance, const MeasuredSet& run, std::string_view framework);

}  // namespace ftax
