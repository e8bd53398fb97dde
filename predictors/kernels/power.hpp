#pragma once

#include "ftax/device.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/gemm_tiles.hpp"

/// Clocks under a power limit: arithmetic at boost clock may draw more than the board is allowed.
namespace ftax::kernels {

/// Returns the energy that a board spends per f32 operation at boost clock, memory and leakage included, in joules.
/// Source: median of power limit / f32 peak over a generation's boards in data/devices but those of inference cards
/// (P4, T4, A2, A10, L4): Pascal 20 to 26 pJ, Volta 17 to 19, Turing 16 to 24, Ampere 7 to 20, Ada 3.3 to 6.9 (the
/// median over the share of its lanes that a product can use), Hopper 6.8 to 10.5 (the lowest of its few),
/// Blackwell 4.8 to 5.5. An A10 sustains 14 TFLOP/s of sgemm at 150 W, 10.7 pJ (github.com/chsasank/device-benchmarks).
[[nodiscard]] constexpr double energy_per_flop_j(Architecture architecture) {
    switch (architecture) {
        case Architecture::cpu:
            return 0;
        case Architecture::maxwell:
        case Architecture::pascal:
        case Architecture::gp100:
            return 22e-12;
        case Architecture::volta:
            return 17.7e-12;
        case Architecture::turing:
            return 20e-12;
        case Architecture::ampere:
            return 10.7e-12;
        case Architecture::ada:
            return 6e-12;
        case Architecture::hopper:
            return 7e-12;
        case Architecture::blackwell:
            return 5.2e-12;
    }
    return 0;
}

/// Tells whether an SM has twice the f32 lanes, sharing operands and issue slots with integer arithmetic: from compute
/// capability 8.6 on, and from the start on GH100. Source: NVIDIA GA102 whitepaper, "2x FP32 throughput"; AD102 and
/// GH100 whitepapers, 128 lanes per SM.
[[nodiscard]] inline bool has_shared_lanes(const DeviceSpec& device) {
    return device.compute_capability_major > 8 ||
           (device.compute_capability_major == 8 && device.compute_capability_minor >= 6);
}

/// Energy of one operation on a tensor core (f16 inputs) against one on a CUDA core; TF32 takes twice as much. Where
/// f32 lanes are doubled and cheap, tensor cores are not. Source: sustained f16 products under power limits: T4 24
/// TFLOP/s at 70 W (forums.developer.nvidia.com/t/264462), A100 PCIe 158 at 250 W
/// (github.com/NVIDIA/cutlass/issues/956), H100 SXM 780 at 700 W (XLA, matmul_interpolator_data.h), A10 55 at 150 W
/// (github.com/chsasank/device-benchmarks).
[[nodiscard]] inline double tensor_energy_ratio(const DeviceSpec& device) {
    if (device.architecture == Architecture::hopper) return 0.12;
    return has_shared_lanes(device) ? 0.21 : 0.14;
}

/// Returns the energy of one operation of a math path at boost clock.
[[nodiscard]] inline double energy_per_flop_j(const DeviceSpec& device, MathPath path) {
    const double core_j = energy_per_flop_j(device.architecture);
    if (!is_tensor(path) || !device.peak(path)) return core_j;
    return core_j * tensor_energy_ratio(device) * (path == MathPath::tf32 ? 2 : 1);
}

/// Returns by how much a stream of arithmetic alone exceeds the power limit: 0 on a card that keeps its clock, 1 when
/// it would draw twice its limit. `energy_scale` corrects its energy_per_flop_j.
template <class T>
T excess_power(const DeviceRates<T>& rates, const T& energy_scale) {
    if (!(rates.power_limit_w > 0)) return T(0.0);
    const T excess = rates.flops_per_s * energy_scale * (rates.energy_per_flop_j / rates.power_limit_w) - 1.0;
    return excess > 0.0 ? excess : T(0.0);
}

/// Returns the time of a kernel of `seconds` at boost clock, `compute_s` of them arithmetic on all multiprocessors,
/// once the board has lowered its clock so that the energy of the arithmetic, spread over the kernel and the `pause_s`
/// until the next one, stays within the power limit. Source: energy balance, the governor being slower than both. A
/// T4's efficiency in one and the same kernel falls from 0.65 at 0.3 ms to 0.41 beyond 10 ms (neusight_ops.csv).
template <class T>
T slowed_by_power(const T& seconds, const T& compute_s, const T& excess, const T& pause_s) {
    const T limited_s = (1.0 + excess) * compute_s - pause_s;
    return seconds < limited_s ? limited_s : seconds;
}

}  // namespace ftax::kernels
