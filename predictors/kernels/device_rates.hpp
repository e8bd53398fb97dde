#pragma once

#include <optional>

#include "ftax/device.hpp"

namespace ftax::kernels {

/// Counts and clocks of a device that no fit scales.
struct DeviceCounts {
    const ArchitectureSpec* chip = nullptr;  ///< lives as long as the program
    MathPath path = MathPath::fp32;
    double sms = 0;
    double l2_bytes = 0;
    double shared_memory_per_sm_bytes = 0;
    double max_threads_per_sm = 0;
    double boost_clock_hz = 0;                 ///< that the card holds while power allows
    double peak_flops_per_s = 0;               ///< of `path`, at that clock
    double dram_bytes_per_s = 0;               ///< datasheet
    bool has_inline_ecc = false;               ///< ECC inside GDDR
    std::optional<double> l2_bytes_per_clock;  ///< read rate of the whole L2
    double power_limit_w = 0;
    double arithmetic_power_w = 0;      ///< what the power limit leaves it, see power.hpp
    double energy_per_flop_j = 0;       ///< of `path` at boost clock, see power.hpp; 0: the card keeps its clock
    double fp32_energy_per_flop_j = 0;  ///< likewise, CUDA cores
};

/// Inputs of the kernel models from a device for one math path.
struct DeviceRates : DeviceCounts {
    double flops_per_s{};            ///< sustained rate of `path`: datasheet × sustained-clock scalar
    double fp32_flops_per_s{};       ///< sustained CUDA-core rate, for depthwise and pointwise arithmetic
    double bandwidth_bytes_per_s{};  ///< sustained memory bandwidth: datasheet × bandwidth scalar
    double floor_s{};                ///< shortest time of any kernel, start to end
};

}  // namespace ftax::kernels
