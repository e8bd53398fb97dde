#pragma once

#include <span>
#include <string>

#include "calibration/fit/fit_report.hpp"
#include "src/io/profile_file.hpp"

namespace ftax::fit {

/// Turns fitted parameters ("name", "name@turing", "name@t4") into the content of a device profile. Where two reports
/// hold the same parameter the earlier one counts: pass first the fit whose rows determine it best.
[[nodiscard]] DeviceProfileFile operator_profile(std::span<const FitReport> reports, std::string version);

}  // namespace ftax::fit
