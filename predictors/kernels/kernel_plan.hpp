#pragma once

#include <string_view>

#include "ftax/equations.hpp"
#include "ftax/predict.hpp"

/// What a kernel model says of one launch; predicting, fitting and explaining read it. See docs/kernel-models.
namespace ftax {

/// Gap between the nodes of a CUDA graph, which rows of mode device_hot contain.
/// Source: start values of kernel_gap_s (framework_model.hpp); nodes of nothing take 1.8 to 2.7 µs in tensor_ops.csv.
inline constexpr double graph_gap_s = 1e-6;

}  // namespace ftax

namespace ftax::kernels {

/// Output tile of a thread block as a library's kernel names give it; empty for kernels without one.
struct TileSize {
    std::string_view name{};  ///< of a catalogue that lives as long as the program
    double columns = 0, rows = 0;
};

/// How thread blocks fill a GPU, averaged over the time of their kernel.
struct Occupancy {
    double sms = 0;    ///< share of the SMs that hold a block, from 0 to 1
    double warps = 0;  ///< share of the warps that the SMs can hold
};

/// What kernels take of a device.
struct KernelTime {
    double seconds{};          ///< at boost clock
    double power_limited_s{};  ///< the time that their energy takes at the power that the limit leaves to arithmetic
};

/// One kernel, or the few that an algorithm launches.
struct KernelPlan : KernelTime {
    double compute_s{};  ///< work of the multiprocessors, in waves
    double memory_s{};   ///< traffic
    double floor_s{};    ///< of all launches
    std::string_view algorithm{};
    TileSize tile;
    double split_k = 1;  ///< parts of the reduction
    double blocks = 0;
    double waves = 0;  ///< blocks / (SMs · resident blocks)
    double threads_per_block = 128;
    double blocks_per_sm = 1;  ///< that an SM holds

    /// What limits it: the floor where it takes less than twice as long, else the larger of its two times.
    [[nodiscard]] Bound bound() const {
        if (this->seconds < 2.0 * floor_s) return Bound::latency_floor;
        return memory_s < compute_s ? Bound::compute : Bound::memory;
    }
};

/// Counts the blocks that are left for the last wave. Source: the definition of waves.
[[nodiscard]] Occupancy occupancy(const KernelPlan& plan, double sms, double max_threads_per_sm);

}  // namespace ftax::kernels
