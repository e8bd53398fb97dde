#pragma once

#include <span>
#include <string>
#include <vector>

#include "ftax/framework.hpp"

namespace ftax::fit {

/// A measured run of a language model under a framework that serves it: its time is `fixed_s` and, in sequence with it,
/// what the host does once per pass and once per pass and sequence.
struct ServingRow {
    double fixed_s = 0;
    double passes = 0;
    double sequences = 0;  ///< over all passes
    double measured_s = 0;
};

/// What the host of one framework costs, with the rows' errors.
struct ServingFit {
    FrameworkProfile profile;  ///< host.forward, host.sequence; no noise yet
    double mean_error = 0;     ///< in the fit
    bool converged = false;
};

/// Estimates host.forward and host.sequence of a framework, around their priors: rows of one card cannot tell a step's
/// host time from bandwidth that its kernels lose. `source` names the rows.
[[nodiscard]] ServingFit fit_serving(const std::string& framework, std::span<const ServingRow> rows,
                                     const std::string& source);

/// The time of a row with the costs of a profile.
[[nodiscard]] double serving_s(const ServingRow& row, const FrameworkProfile& profile);

}  // namespace ftax::fit
