#pragma once

#include <vector>

/// How a fit in log space (log_fit.hpp) runs and how it went: all that a header needs to know of it, without Ceres.
namespace ftax::fit {

struct FitOptions {
    int starts = 3;               ///< the first from the priors' centres, the others scattered within the priors
    int iterations = 60;          ///< per start
    double row_log_stddev = 0.1;  ///< residual of one row that counts as usual; beyond it the loss grows linearly
    unsigned seed = 1;            ///< for the scattered starts
};

struct FitSummary {
    bool converged = false;
    double cost = 0;            ///< at the best start
    std::vector<double> costs;  ///< per start; equal costs suggest a global minimum
};

}  // namespace ftax::fit
