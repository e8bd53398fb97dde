#pragma once

#include "ftax/device.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/gemm_tiles.hpp"

/// Clocks under a power limit: arithmetic at boost clock may draw more than the board is allowed.
namespace ftax::kernels {

/// Returns the energy that a board spends per f32 operation at boost clock, memory and leakage included, in joules.
/// Source: power limit / f32 peak of the boards of a generation that keep their boost clock (data/devices): GTX 1080 Ti
/// 22 pJ, V100 17.7, Quadro RTX 8000 and Titan RTX 16 to 17, RTX 3090 and A40 8 to 10, RTX 4090 5.4, H100 PCIe 6.8,
/// RTX 5090 and RTX PRO 6000 4.8 to 5.5.
[[nodiscard]] constexpr double energy_per_flop_j(Architecture architecture) {
    switch (architecture) {
        case Architecture::cpu:
            return 0;
        case Architecture::maxwell:
        case Architecture::pascal:
            return 22e-12;
        case Architecture::volta:
            return 17.5e-12;
        case Architecture::turing:
            return 16.5e-12;
        case Architecture::ampere:
            return 9e-12;
        case Architecture::ada:
            return 5.4e-12;
        case Architecture::hopper:
            return 7e-12;
        case Architecture::blackwell:
            return 5.2e-12;
    }
    return 0;
}

/// Energy of one operation on a tensor core (f16 inputs) against one on a CUDA core.
/// Source: V100 and A100 hold 90 % of their tensor peak at 250 W: 250 W / (0.9 · 112 TFLOP/s) = 2.5 pJ against 17.7,
/// 250 W / (0.9 · 312 TFLOP/s) = 0.9 pJ against 9.
inline constexpr double tensor_energy_ratio = 0.12;

/// Returns by how much a stream of arithmetic alone exceeds the power limit: 0 on a card that keeps its clock, 1 when
/// it would draw twice its limit. `energy_scale` corrects energy_per_flop_j.
template <class T>
T excess_power(const DeviceRates<T>& rates, const T& energy_scale) {
    if (!(rates.power_limit_w > 0)) return T(0.0);
    double energy_j = energy_per_flop_j(rates.architecture);
    if (is_tensor(rates.path)) energy_j *= tensor_energy_ratio * (rates.path == MathPath::tf32 ? 2.0 : 1.0);
    const T excess = rates.flops_per_s * energy_scale * (energy_j / rates.power_limit_w) - 1.0;
    return excess > 0.0 ? excess : T(0.0);
}

/// Returns the time of a kernel of `seconds` at boost clock, `compute_s` of them arithmetic, once the board has lowered
/// its clock to stay within its power limit. The governor needs `response_s` to see the load.
/// Source: the efficiency of one and the same T4 kernel falls from 0.65 at 0.3 ms to 0.41 beyond 10 ms (KERNEL_NOTES).
template <class T>
T slowed_by_power(const T& seconds, const T& compute_s, const T& excess, const T& response_s) {
    return seconds + excess * compute_s * seconds / (seconds + response_s);
}

}  // namespace ftax::kernels
