#pragma once

#include <algorithm>
#include <cstdint>

#include "ftax/device.hpp"
#include "ftax/factors.hpp"
#include "ftax/predict.hpp"

namespace ftax {

/// Components of a launch's prediction, for code that calibrates or recombines them: fits, anchors, search spaces.
struct LaunchCosts : OpPrediction {
    std::int32_t module_calls = 0;        ///< preceding nn.Module calls
    std::int32_t list_parts = 0;          ///< tensors of its list argument
    std::int32_t step_launches = 0;       ///< kernels of the steps of a recurrence
    bool blas_call = false;               ///< its dispatch queries cuBLAS
    Factor factor = Factor::elementwise;  ///< class of the longest of its kernels
    double boost_s = 0;                   ///< device time of its kernels at boost clock
    double power_limited_s = 0;           ///< their energy as time at arithmetic_power_w, see power.hpp
    double throttling_s = 0;              ///< sum of throttling_seconds() over its kernels
    double sm_active_s = 0;               ///< Σ kernel time × share of the SMs that hold a thread block
    double warps_active_s = 0;            ///< Σ kernel time × resident warps / maximum warps

    /// Time between its kernels and those before them on a device that the host keeps busy; the kernels of a
    /// recurrence's steps have it in their floor.
    [[nodiscard]] double gaps_s(double kernel_gap_s) const { return (kernels - step_launches) * kernel_gap_s; }
};

/// Returns a board's mean power over `seconds`, during which SMs are busy for `active_s` and the work takes `energy_j`
/// (power.hpp). Source of `busy`, a share of the limit: fitted to serving.csv, docs/kernel-models/power.md.
[[nodiscard]] inline double mean_power_w(const DeviceSpec& device, double seconds, double active_s, double energy_j) {
    constexpr double busy = 0.56;
    const double active_w = (busy * device.power_limit_w * active_s + energy_j) / seconds;
    return std::min(device.power_limit_w, device.idle_power_w() + active_w);
}

}  // namespace ftax
