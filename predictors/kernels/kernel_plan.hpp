#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>

#include "ftax/equations.hpp"
#include "ftax/predict.hpp"

/// Result of a kernel model for one launch, used by prediction, fits and explanations. See docs/kernel-models.
namespace ftax {

/// Gap between the nodes of a CUDA graph, included in rows of mode device_hot (framework_model.hpp, kernel_gap_s).
inline constexpr double graph_gap_s = 1e-6;

}  // namespace ftax

namespace ftax::kernels {

/// Output tile of a thread block as in a library's kernel names; empty for kernels without tiles.
struct TileSize {
    std::string_view name{};  ///< refers to a catalogue with static lifetime
    double columns = 0, rows = 0;
};

/// Occupancy of a GPU by thread blocks, averaged over the kernel's time.
struct Occupancy {
    double sms = 0;    ///< share of the SMs that hold a block, from 0 to 1
    double warps = 0;  ///< resident warps / maximum warps
};

struct KernelTime {
    double seconds{};          ///< at boost clock
    double power_limited_s{};  ///< their energy as time at arithmetic_power_w, see power.hpp
    double host_launches{};    ///< that the host makes one by one meanwhile, each of host.step_launch
};

/// Plan of one kernel, or of the few kernels of an algorithm.
struct KernelPlan : KernelTime {
    double compute_s{};  ///< work of the SMs, in waves
    double memory_s{};   ///< memory traffic
    double floor_s{};    ///< total of all launches
    std::string_view algorithm{};
    TileSize tile;
    double split_k = 1;  ///< parts of the reduction
    double blocks = 0;
    double waves = 0;  ///< blocks / (SMs · resident blocks)
    double threads_per_block = 128;
    double blocks_per_sm = 1;  ///< resident blocks per SM

    /// Returns the limiter: the floor if the kernel takes less than twice its floor, else the larger of its two times.
    [[nodiscard]] Bound bound() const {
        if (this->seconds < 2.0 * floor_s) return Bound::latency_floor;
        return memory_s < compute_s ? Bound::compute : Bound::memory;
    }
};

/// Returns the occupancy, with a partial last wave. Source: the definition of waves.
[[nodiscard]] inline Occupancy occupancy(const KernelPlan& plan, double sms, double max_threads_per_sm) {
    const double per_sm = std::ceil(plan.blocks) / sms;
    const double waves = std::ceil(per_sm / plan.blocks_per_sm);
    if (waves < 1) return {};
    const double last = per_sm - (waves - 1) * plan.blocks_per_sm;  // blocks per SM in the last wave
    return {.sms = (waves - 1 + std::min(1.0, last)) / waves,
            .warps = std::min(1.0, per_sm / waves * plan.threads_per_block / max_threads_per_sm)};
}

}  // namespace ftax::kernels
