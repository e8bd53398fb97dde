#pragma once

#include <algorithm>
#include <optional>

#include "ftax/device.hpp"

namespace ftax::kernels {

/// Counts and clocks of a device, not scaled by fits.
struct DeviceCounts {
    const ArchitectureSpec* chip = nullptr;  ///< static lifetime
    MathPath path = MathPath::fp32;
    double sms = 0;
    double f32_lanes = 128;  ///< of an SM
    double l2_bytes = 0;
    double shared_memory_per_sm_bytes = 0;
    double max_threads_per_sm = 0;
    double boost_clock_hz = 0;                 ///< sustained clock if not power-limited
    double peak_flops_per_s = 0;               ///< peak rate of `path` at that clock
    double dram_bytes_per_s = 0;               ///< datasheet
    bool has_inline_ecc = false;               ///< ECC stored in GDDR
    std::optional<double> l2_bytes_per_clock;  ///< read rate of the whole L2
    double power_limit_w = 0;
    double arithmetic_power_w = 0;      ///< power limit less idle power, see power.hpp
    double traffic_power_share = 0;     ///< power of a memory-bound kernel relative to it
    double energy_per_flop_j = 0;       ///< energy of `path` at boost clock, see power.hpp; 0: no throttling
    double fp32_energy_per_flop_j = 0;  ///< the same for CUDA cores
    double tensor_rate_left = 1;        ///< of the chip's tensor cores, where the board runs them at a lower rate
};

/// Device inputs of the kernel models for one math path.
struct DeviceRates : DeviceCounts {
    double flops_per_s{};            ///< sustained rate of `path`: datasheet × sustained-clock scalar
    double fp32_flops_per_s{};       ///< sustained CUDA-core rate, for depthwise and pointwise arithmetic
    double bandwidth_bytes_per_s{};  ///< sustained memory bandwidth: datasheet × bandwidth scalar
    double floor_s{};                ///< shortest kernel time, start to end
};

/// Returns the share of requests that miss a cache: xⁿ / (1 + xⁿ), x = working set / capacity.
inline double miss_share(double x, int n) {
    double power = x;
    while (--n > 0) power *= x;
    return power / (1.0 + power);
}

/// Memory latency in cycles.
inline constexpr double wait_cycles = 940;

/// Cycles of the shortest kernel.
inline constexpr double shortest_cycles = 2500;

/// Returns how much longer than the floor a kernel takes that waits for memory `waits` times in sequence. Floors fitted
/// to whole models are averages over such kernels: they contain what exceeds the shortest kernel.
inline double beyond_floor_s(double waits, const DeviceRates& device) {
    const double contained_s = std::max(0.0, device.floor_s - shortest_cycles / device.boost_clock_hz);
    return std::max(0.0, waits * wait_cycles / device.boost_clock_hz - contained_s);
}

/// The same for kernels that whole models consist of: nothing unless the floor was measured apart from the gap.
inline double beyond_measured_floor_s(double waits, const DeviceRates& device) {
    return device.chip->has_measured_gaps() ? beyond_floor_s(waits, device) : 0;
}

}  // namespace ftax::kernels
