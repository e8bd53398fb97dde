#pragma once

#include <vector>

#include "calibration/fit/framework_fit.hpp"

namespace ftax::folds {

/// Composes one profile per GPU of framework_tax.csv, the machine of the run with the median scale among those that
/// were measured with it: what `--host framework-tax-v100` names. The host differs by a factor of 2 between machines,
/// and users know theirs by its GPU.
[[nodiscard]] std::vector<FrameworkProfile> host_profiles(const fit::FrameworkFit& fitted);

}  // namespace ftax::folds
