#pragma once

#include <cmath>

#include "predictors/kernels/device_rates.hpp"

/// How long a kernel's traffic takes between L2 and memory. What a kernel reads was written by those before it and what
/// it writes is read by the next: a footprint that the L2 holds does not touch the memory.
namespace ftax::kernels {

struct ResidencyParameters {
    double footprint{};           ///< over the L2, at which half of the traffic still hits it; 0: none does
    double l2_bytes_per_cycle{};  ///< per SM
};

/// Share of requests that miss a cache: (x^n)/(1 + x^n) with n = 4, or 6 where sharp, x = working set / capacity.
inline double miss_share(double working_set, double capacity, bool sharp) {
    const double x = working_set / capacity;
    const double x2 = x * x;
    const double power = sharp ? x2 * x2 * x2 : x2 * x2;
    return power / (1.0 + power);
}

/// Share of a forward pass's activations that have left the L2 when a kernel that touches `bytes` comes to them: each
/// line that comes in takes the place of any other, so that one stays through as many lines as there are with 1/e.
/// Source: random replacement; the L2 of GPUs does not replace the least recently used line (Mei and Chu, "Dissecting
/// GPU Memory Hierarchy through Microbenchmarking", 2017). Cards left out of layer_ops.csv want 0.8 to 1.25 of their
/// L2.
inline double evicted_share(double bytes, double l2_bytes) {
    return 1 - std::exp(-bytes / l2_bytes);
}

/// Generations whose L2 of 24 MB and more is one for all SMs, unlike that of large dies with memory on both sides
/// (A100, H100), and the footprint at which half of the traffic still hits it. Source: kernelbench.csv, L40S: kernels
/// that touch 70 MB of its 96 take what its L2 does; with the footprint of the other cards, 64 MB, device-bound rows of
/// levels 2 and 3 would be off by 23.8 and 15.9 % over all machines instead of 19.7 and 13.3.
inline constexpr double large_l2_footprint = 1;
inline bool has_large_l2(const ArchitectureSpec& chip) {
    return chip.architecture == Architecture::ada || chip.architecture == Architecture::rtx_blackwell;
}

/// Seconds per byte of a kernel that touches `footprint_bytes`, at the full rates of memory and L2.
/// Source: the form fits softmax, layer norm and pointwise rows of neusight_ops.csv on five GPUs.
inline double seconds_per_byte(double footprint_bytes, const DeviceRates& device, const ResidencyParameters& p) {
    if (!(p.footprint > 0.0)) return 1.0 / device.bandwidth_bytes_per_s;
    const double footprint = has_large_l2(*device.chip) ? large_l2_footprint : p.footprint;
    const double bus = miss_share(double(footprint_bytes), footprint * device.l2_bytes, false);
    return bus / device.bandwidth_bytes_per_s +
           (1.0 - bus) / (p.l2_bytes_per_cycle * (device.sms * device.boost_clock_hz));
}

}  // namespace ftax::kernels
