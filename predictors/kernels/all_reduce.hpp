#pragma once

#include <algorithm>
#include <cstdint>

/// The sum of a tensor over the cards of one machine.
namespace ftax::kernels {

/// Seconds of an all-reduce of `bytes` over `cards` that each reach the next with `peer_bandwidth_bytes_per_s` in one
/// direction: a ring in 2 (n - 1) steps, by the faster of NCCL's protocols, LL for short messages, Simple for long
/// ones. Source: NCCL 2.18, src/graph/tuning.cc (baseLat, hwLat of NVLink, LL at half the bandwidth) and topo.h: a link
/// carries 20 of its 25 GB/s.
[[nodiscard]] inline double all_reduce_s(double bytes, std::int64_t cards, double peer_bandwidth_bytes_per_s) {
    if (cards < 2) return 0;
    constexpr double usable = 0.8;
    struct Protocol {
        double base_s, step_s, bandwidth;
    };
    constexpr Protocol ll{6.6e-6, 0.6e-6, 0.5}, simple{8.4e-6, 3.4e-6, 1};
    const double steps = 2 * static_cast<double>(cards - 1);
    const double wire_s = steps / static_cast<double>(cards) * bytes / (usable * peer_bandwidth_bytes_per_s);
    const auto time_s = [&](const Protocol& p) { return p.base_s + steps * p.step_s + wire_s / p.bandwidth; };
    return std::min(time_s(ll), time_s(simple));
}

}  // namespace ftax::kernels
