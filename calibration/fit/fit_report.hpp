#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/io/profile_file.hpp"

namespace ftax::fit {

/// Errors of one group of rows: |predicted − measured| / measured.
struct ErrorSummary {
    std::string group{};  ///< a device's slug, or a region of shapes
    std::size_t rows = 0;
    double mean = 0, median = 0, p90 = 0;
    double bias = 0;  ///< median of log(predicted / measured)
};

/// Summarises log(predicted / measured).
[[nodiscard]] ErrorSummary summarize(std::string group, std::vector<double> log_errors);

/// One way of splitting rows into those fitted and those predicted.
struct Fold {
    std::string name{};                  ///< "in the fit", "left-out", "left-out, clock and bandwidth measured"
    std::vector<ErrorSummary> groups{};  ///< per device
    double mean = 0;                     ///< MAPE over the devices: the mean of the groups' means
};

/// What fitting one kernel class gave.
struct FitReport {
    std::string kernel_class{};
    std::vector<ScopedParameter> parameters{};  ///< of the kernel models
    std::vector<ScopedParameter> nuisance{};    ///< of the hosts that the devices were measured in, by device
    std::vector<Fold> folds{};
    bool converged = false;
};

}  // namespace ftax::fit
