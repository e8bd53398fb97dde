#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "calibration/fit/fit_report.hpp"
#include "calibration/fit/scoped_fit.hpp"

/// Fits of kernels timed alone on tensor cores: ratios that all generations share and those of each. Clocks and
/// bandwidths are those of the datasheet or of a profile.
namespace ftax::fit {

struct GenerationFitOptions {
    FitOptions fit{.starts = 1, .iterations = 30, .row_log_stddev = 0.1, .seed = 1};
    std::size_t rows_per_device = 450;  ///< spread evenly; errors are taken over all rows
    int rounds = 3;                     ///< fits; priors are centred on the last one's result
    bool folds = true;                  ///< a fifth of the shapes left out; one device
};

/// Engine of such a fit, without rows, unknowns and model.
[[nodiscard]] ScopedFit generation_fit(std::string kernel_class, const GenerationFitOptions& options);

/// Whether a shape is in the fifth that a fold leaves out on all devices.
[[nodiscard]] inline bool is_held_out(std::int64_t hash) {
    return static_cast<std::uint64_t>(hash) % 5 == 4;
}

/// Appends the values of every generation with tensor cores: where no row determines one, the centre of the others,
/// which is closer on GPUs left out than the nearest kin's value.
void add_generations(const ScopedFit& fit, const ScopedUnknowns& unknowns, FitReport& report);

}  // namespace ftax::fit
