#pragma once

#include "predictors/kernels/device_rates.hpp"

/// Time of a kernel's traffic between L2 and memory. A kernel reads outputs of earlier kernels, and the next one reads
/// its outputs: a footprint that fits into the L2 causes no memory traffic.
namespace ftax::kernels {

struct ResidencyParameters {
    double resident_footprint{};  ///< footprint / L2 size at which half of the traffic hits; 0: none hits
    double l2_bytes_per_cycle{};  ///< per SM
};

/// Footprint, relative to the L2, at which half of the traffic hits a large unified L2.
inline constexpr double large_l2_footprint = 1;

/// Returns the seconds per byte of a kernel that touches `footprint_bytes`, at the full rates of memory and L2.
inline double seconds_per_byte(double footprint_bytes, const DeviceRates& device, const ResidencyParameters& p) {
    if (!(p.resident_footprint > 0.0)) return 1.0 / device.bandwidth_bytes_per_s;
    const double footprint = device.chip->has_large_l2 ? large_l2_footprint : p.resident_footprint;
    const double bus = miss_share(footprint_bytes / (footprint * device.l2_bytes), 4);
    return bus / device.bandwidth_bytes_per_s +
           (1.0 - bus) / (p.l2_bytes_per_cycle * (device.sms * device.boost_clock_hz));
}

}  // namespace ftax::kernels
