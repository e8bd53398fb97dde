#pragma once

#include <algorithm>
#include <cstdint>

#include "predictors/kernels/shapes.hpp"

namespace ftax::kernels {

/// Returns the seconds of NCCL's ring all-reduce of `bytes` over `cards` with `peer_bandwidth_bytes_per_s` in one
/// direction: 2 (n - 1) steps with the faster of two protocols, LL for short messages, Simple for long ones. Source:
/// NCCL 2.18, src/graph/tuning.cc (baseLat, hwLat of NVLink, LL at half the bandwidth) and topo.h: a link carries 20 of
/// its 25 GB/s.
[[nodiscard]] inline double all_reduce_s(double bytes, std::int64_t cards, double peer_bandwidth_bytes_per_s) {
    if (cards < 2) return 0;
    constexpr double usable = 0.8;
    struct Protocol {
        double base_s, step_s, bandwidth;
    };
    constexpr Protocol ll{6.6e-6, 0.6e-6, 0.5}, simple{8.4e-6, 3.4e-6, 1};
    const double steps = 2 * real(cards - 1);
    const double wire_s = steps / real(cards) * bytes / (usable * peer_bandwidth_bytes_per_s);
    const auto time_s = [&](const Protocol& p) { return p.base_s + steps * p.step_s + wire_s / p.bandwidth; };
    return std::min(time_s(ll), time_s(simple));
}

/// Returns the seconds with a serving library's own kernels, which read the peers' memory: one-shot (every card reads
/// everything) or two-shot (reduce-scatter, then all-gather). They handle messages up to 8 MiB between two cards or
/// over fully connected links (vLLM, csrc/custom_all_reduce.cuh; TensorRT-LLM, customAllReduceKernels). Longer
/// messages, and those over PCIe, use NCCL.
/// Source: times of both libraries on A100 and H100 SXM, 4 KiB to 8 MiB over 2, 4 and 8 cards (AIConfigurator 0.12,
/// custom_allreduce_perf): mean error 20 %; on H200 and B200, which were not fitted, 23 and 27 %; NCCL's ring would be
/// off by 73 and 43 %.
[[nodiscard]] inline double served_all_reduce_s(double bytes, std::int64_t cards, double peer_bandwidth_bytes_per_s) {
    constexpr double longest_bytes = 8 << 20, least_switched_bytes_per_s = 100e9;
    const bool joined = cards == 2 || peer_bandwidth_bytes_per_s >= least_switched_bytes_per_s;
    const double ring_s = all_reduce_s(bytes, cards, peer_bandwidth_bytes_per_s);
    if (cards < 2 || bytes > longest_bytes || !joined) return ring_s;
    const double others = real(cards - 1);
    const double wire_s = bytes / peer_bandwidth_bytes_per_s;
    const double one_shot_s = 4.8e-6 + others * wire_s / 0.6;
    const double two_shot_s = 12e-6 + 2 * others / real(cards) * wire_s / 0.5;
    return std::min({one_shot_s, two_shot_s, ring_s});
}

}  // namespace ftax::kernels
