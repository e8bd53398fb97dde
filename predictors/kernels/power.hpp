#pragma once

#include "ftax/device.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/kernels/shapes.hpp"

/// Throttling under a power limit: arithmetic at boost clock may exceed the board's limit.
/// docs/kernel-models/power.md derives the balance.
namespace ftax::kernels {

/// Returns the power limit less the idle power, available to arithmetic, in watts.
[[nodiscard]] inline double arithmetic_power_w(const DeviceSpec& device) {
    return device.power_limit_w - device.idle_power_w();
}

/// Returns the power of a memory-bound kernel as a share of arithmetic_power_w, at most all of it, since traffic alone
/// does not slow the clock: 179 pJ for each byte that it moves. Source: a V100 SXM2 draws 180 to 200 of its 300 W while
/// decoding with a language model, which is bandwidth-bound (github.com/1CatAI/1Cat-vLLM/issues/535).
[[nodiscard]] inline double traffic_power_share(const DeviceRates& rates) {
    return std::min(1.0, 179e-12 * rates.bandwidth_bytes_per_s / rates.arithmetic_power_w);
}

/// Returns the energy of a tensor-core operation relative to f16 inputs: the chip's ratio for operands of at most eight
/// bits, twice for TF32. Source: PrecisionSpec::energy_ratio.
[[nodiscard]] inline double energy_ratio(const ArchitectureSpec& chip, MathPath path) {
    const bool narrow = path == MathPath::int8_tensor || path == MathPath::fp8_tensor || path == MathPath::fp4_tensor;
    return narrow ? chip.narrow_energy_ratio : path == MathPath::tf32 ? 2 : 1;
}

/// Returns the energy of one operation of a math path at boost clock. A tensor-core operation on f16 takes
/// tensor_energy_ratio times that of a CUDA core, other types energy_ratio() times that. Source: sustained f16 products
/// under power limits, docs/kernel-models/power.md. Volta is taken as Turing, Blackwell as Ada.
[[nodiscard]] inline double energy_per_flop_j(const DeviceSpec& device, MathPath path) {
    const double core_j = device.chip().f32_energy_per_flop_j;
    if (!is_tensor(path) || !device.peak(path)) return core_j;
    return core_j * device.chip().tensor_energy_ratio * energy_ratio(device.chip(), path);
}

/// Returns the energy of a tensor-core operation that takes `cycles` times as many cycles as in a matrix product at
/// full rate: most of it goes with the cycles. Source: an L20, whose tensor cores are slowed, falls to 107 TFLOP/s with
/// the largest products, which are taken to be at its limit of 275 W (tensor_gemm::share_left).
constexpr double energy_of_cycles(double cycles) {
    return 1 + 0.77 * std::max(0.0, cycles - 1);
}

/// Returns the share of flops_per_s that the power limit lets tensor cores sustain, with the energy that matrix
/// products take; `energy_scale` is theirs. The main loops of convolutions and attention consist of such products,
/// which may take more `cycles` than those of cuBLAS. Not for TF32 where the generation runs it at boost clock. Source:
/// docs/kernel-models/power.md, convolutions.
inline double powered_share(const DeviceRates& rates, double energy_scale, double cycles = 1) {
    const bool boosts = rates.path == MathPath::tf32 && rates.chip->tf32_at_boost;
    if (!is_tensor(rates.path) || boosts) return 1.0;
    const double flop_j = rates.chip->tensor_energy_per_flop_j * energy_ratio(*rates.chip, rates.path) * energy_scale *
                          energy_of_cycles(cycles / rates.tensor_rate_left);
    return rates.power_limit_w / (flop_j * rates.flops_per_s);
}

/// Returns the power of sustained arithmetic relative to arithmetic_power_w: 2 on a card that would have to halve its
/// clock. `energy_scale` corrects energy_per_flop_j.
inline double power_ratio(const DeviceRates& rates, double energy_scale) {
    if (!(rates.arithmetic_power_w > 0)) return 0.0;
    return rates.flops_per_s * energy_scale * (rates.energy_per_flop_j / rates.arithmetic_power_w);
}

/// Returns the energy of a kernel of `seconds`, expressed as time at arithmetic_power_w: that of its arithmetic,
/// `arithmetic_s`, or that of memory-bound execution, whichever is larger.
inline double power_limited_seconds(double seconds, double arithmetic_s, const DeviceCounts& rates) {
    return std::max(arithmetic_s, rates.traffic_power_share * seconds);
}

/// Returns the time of consecutive kernels: the board lowers its clock until their total energy stays within the power
/// limit; memory-bound kernels leave power for arithmetic. Source: energy balance.
inline double within_power(const KernelTime& kernels) {
    return kernels.seconds < kernels.power_limited_s ? kernels.power_limited_s : kernels.seconds;
}

/// Returns the time of a kernel that is timed repeatedly with pauses. A kernel of `power_control_time_s` feels half of
/// the limit. Source: a T4's efficiency in the same kernel falls from 0.65 at 0.3 ms to 0.41 beyond 10 ms, an A100's
/// from 0.97 to 0.86 between 0.4 and 1.5 ms (neusight_ops.csv).
inline double within_power(const KernelTime& kernel, double power_control_time_s) {
    const double throttling_s = within_power(kernel) - kernel.seconds;
    return kernel.seconds + throttling_s * (kernel.seconds / (kernel.seconds + power_control_time_s));
}

}  // namespace ftax::kernels
