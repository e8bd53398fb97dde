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
    bool at_idle_clock = false;  ///< shows the host only where the kernel stays hidden at half the clock
};

/// Estimates the host time of operators (latency = host + kernel: each call is timed alone) with kernel models from
/// `kernels`: the median over the campaign of latency − kernel, for rows in which the host counts. Each device gets its
/// own dispatch times, a device without rows the shorth of the others; call_profile prefers those of earlier fits.
/// `hosts` must hold the machines' scales (fit_memory).
[[nodiscard]] FitReport fit_dispatch(std::span<const DispatchRow> rows, const DeviceProfileFile& kernels,
                                     const HostProfileFile& hosts);

}  // namespace ftax::fit
