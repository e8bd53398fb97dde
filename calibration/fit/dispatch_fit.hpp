#pragma once

#include <span>

#include "calibration/fit/fit_report.hpp"
#include "ftax/device.hpp"
#include "ftax/measurement.hpp"
#include "src/io/profile_file.hpp"

namespace ftax::fit {

/// One measured operator.
struct DispatchRow {
    const DeviceSpec* device = nullptr;
    const OperatorMeasurement* measured = nullptr;
    double order = 0;            ///< rows of the campaign before it
    bool at_idle_clock = false;  ///< tells of the host only where the kernel hides behind it, also at half the clock
};

/// Estimates what the host adds to operators (latency = host + kernel: each call is timed alone), the kernel models
/// held as `kernels` has them: the median of latency − kernel over rows in which the host counts, over the campaign.
/// Each device gets its own dispatch times, a device nobody measured what most of the others show; of both
/// operator_profiles takes only what no earlier fit says. `hosts` must hold the machines' scales (fit_memory).
[[nodiscard]] FitReport fit_dispatch(std::span<const DispatchRow> rows, const DeviceProfileFile& kernels,
                                     const HostProfileFile& hosts);

}  // namespace ftax::fit
