#pragma once

#include <span>
#include <string_view>

#include "calibration/fit/log_fit.hpp"
#include "src/io/profile_file.hpp"

namespace ftax::fit {

/// Fixes the unknowns of a device that other rows determine better.
void hold(LogFit::Block& block, std::span<const ScopedParameter> held, std::string_view device_slug);

}  // namespace ftax::fit
