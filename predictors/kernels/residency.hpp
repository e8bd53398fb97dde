#pragma once

#include <cmath>

#include "predictors/kernels/device_rates.hpp"

/// Time of a kernel's traffic between L2 and memory. A kernel reads outputs of earlier kernels, and the next one reads
/// its outputs: a footprint that fits into the L2 causes no memory traffic.
namespace ftax::kernels {

struct ResidencyParameters {
    double resident_footprint{};  ///< footprint / L2 size at which half of the traffic hits; 0: none hits
    double l2_bytes_per_cycle{};  ///< per SM
};

/// Returns the share of activations evicted from the L2 while a kernel touches `bytes`, under random replacement: a
/// line survives as many fills as the cache has lines with probability 1/e.
/// Source: random replacement; the L2 of GPUs does not replace the least recently used line (Mei and Chu, "Dissecting
/// GPU Memory Hierarchy through Microbenchmarking", 2017). Left-out cards of layer_ops.csv prefer 0.8 to 1.25 of their
/// L2.
inline double evicted_share(double bytes, double l2_bytes) {
    return 1 - std::exp(-bytes / l2_bytes);
}

/// Footprint, relative to the L2, at which half of the traffic hits a large unified L2. Source: kernelbench.csv, L40S:
/// kernels that touch 70 of its 96 MB run at L2 speed; with the footprint of the other cards, 64 MB, the error of
/// device-bound rows of levels 2 and 3 over all machines is 23.8 and 15.9 % instead of 19.7 and 13.3.
inline constexpr double large_l2_footprint = 1;

/// Returns the seconds per byte of a kernel that touches `footprint_bytes`, at the full rates of memory and L2.
/// Source: the form fits softmax, layer norm and pointwise rows of neusight_ops.csv on five GPUs.
inline double seconds_per_byte(double footprint_bytes, const DeviceRates& device, const ResidencyParameters& p) {
    if (!(p.resident_footprint > 0.0)) return 1.0 / device.bandwidth_bytes_per_s;
    const double footprint = device.chip->has_large_l2 ? large_l2_footprint : p.resident_footprint;
    const double bus = miss_share(footprint_bytes / (footprint * device.l2_bytes), 4);
    return bus / device.bandwidth_bytes_per_s +
           (1.0 - bus) / (p.l2_bytes_per_cycle * (device.sms * device.boost_clock_hz));
}

}  // namespace ftax::kernels
