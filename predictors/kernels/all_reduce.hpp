#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include "ftax/device.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/profiles/parameters.hpp"

namespace ftax::kernels {

/// What joins the cards of a machine: NVLink, or PCIe with peer access or through memory of the host.
enum class LinkKind : std::uint8_t { nvlink, peer, host };
inline constexpr std::array<std::string_view, 3> link_names{"nvlink", "peer", "host"};
struct Link {
    LinkKind kind = LinkKind::nvlink;
    double bytes_per_s = 0;   ///< in one direction
    bool own_kernels = true;  ///< an engine sums with kernels of its own where it can
    double ring_share = 0.8;  ///< of the rate, that NCCL's rings reach
    double cards = 8;         ///< largest number of cards that it joins
    double switch_share = 0;  ///< of the rate, at which its switches sum (NVLink SHARP); 0: they do not
    /// Between machines, of each card in one direction. Source: DGX H100 and B200 user guides: 400 Gb/s.
    double network_bytes_per_s = 50e9;
};
/// Parameters of a framework's profile, which describes the machine as well, that replace the link of the card.
inline constexpr std::string_view link_kind = "link.kind", link_rate = "link.bytes_per_s", link_kernels = "link.own",
                                  link_cards = "link.cards", link_network = "link.network_bytes_per_s";

inline constexpr double pcie4_bytes_per_s = 31.5e9;  ///< 16 lanes of PCIe 4.0, in one direction
/// Returns the link between cards: that of the machine's profile, else that of most machines with the card.
[[nodiscard]] inline Link link_of(const DeviceSpec& device, std::span<const Parameter> machine = {}) {
    constexpr double fastest_pcie = 70e9, through_host = 0.16;
    const double rate = device.peer_bandwidth_bytes_per_s.value_or(device.memory_bandwidth_bytes_per_s);
    Link link{rate > fastest_pcie ? LinkKind::nvlink : device.peer_access ? LinkKind::peer : LinkKind::host, rate};
    const Parameter *kind = find_parameter(machine, link_kind), *given = find_parameter(machine, link_rate);
    if (kind != nullptr) link.kind = static_cast<LinkKind>(kind->value);
    const double slot = device.compute_capability_major >= 9 ? 2 * pcie4_bytes_per_s : pcie4_bytes_per_s;
    if (link.kind != LinkKind::nvlink) link.bytes_per_s = std::min(rate, slot);
    if (link.kind == LinkKind::host) link.bytes_per_s *= through_host;
    if (given != nullptr) link.bytes_per_s = given->value;
    // Peers below different PCIe switches use memory of the host. Source: NCCL 2.18, src/graph/paths.cc (PATH_PXB).
    const bool assumed = link.kind == LinkKind::peer && kind == nullptr && given == nullptr;
    if (link.kind == LinkKind::host || assumed) link.ring_share = assumed ? through_host : 1;
    link.own_kernels = find_parameter(machine, link_kernels) == nullptr;
    if (link.kind == LinkKind::nvlink && device.compute_capability_major == 9) link.switch_share = 0.6;
    const Parameter *cards = find_parameter(machine, link_cards), *network = find_parameter(machine, link_network);
    link.cards = cards != nullptr ? cards->value : device.linked_cards;
    if (network != nullptr) link.network_bytes_per_s = network->value;
    return link;
}

/// Returns the seconds of NCCL's all-reduce of `bytes` over `cards`, in one or more `calls`: a ring of 2 (n - 1) steps
/// with the faster of two protocols, LL for short messages, Simple for long ones. Between m machines 2 (m - 1) steps
/// are slower, and trees with LL or LL128 sum short messages at half of the rate. Source: NCCL 2.18, tuning.cc and
/// topo.h. Chosen with the tables of seven cards in view: long messages over NVLink, half of which is copied once more,
/// and two calls, a gather and a scatter; docs/language-models.md. Hopper's switches sum 273 GB/s for five cards and
/// more (NVIDIA/nccl, issue 1455).
[[nodiscard]] inline double all_reduce_s(double bytes, std::int64_t cards, const Link& link, double calls = 1) {
    if (cards < 2) return 0;
    const bool pcie = link.kind != LinkKind::nvlink;
    const double steps = 2 * real(cards - 1), machines = std::ceil(real(cards) / link.cards);
    const double of_machine = real(cards) / machines, moved = steps / real(cards) * bytes;
    double rate = link.ring_share * link.bytes_per_s;
    if (machines > 1) rate = std::min(rate, of_machine * link.network_bytes_per_s);
    const auto time_s = [&](double base, double step, double wire) { return calls * base + steps * step + wire; };
    if (calls > 1 && machines == 1 && !pcie) {
        rate *= 0.91 * (1 - 0.62 / of_machine);
        return std::min(time_s(8.5e-6, 0.85e-6, 2 * moved / rate), time_s(21.8e-6, 1.4e-6, moved / rate));
    }
    const double ll_step_s = pcie ? 1e-6 : 0.6e-6, step_s = pcie ? 5.7e-6 : 3.4e-6;
    if (machines == 1) {
        const double wire_s = pcie ? moved / rate : (moved + 0.5 * bytes) / (0.96 * link.bytes_per_s);
        const double ring_s = std::min(time_s(6.6e-6, ll_step_s, 2 * moved / rate), time_s(8.4e-6, step_s, wire_s));
        const double switch_rate = cards > 4 ? link.switch_share * link.bytes_per_s : 0;
        return switch_rate > 0 ? std::min(ring_s, 60e-6 + bytes / switch_rate) : ring_s;
    }
    const auto tree_s = [&](double base_s, double hop_s, double network_s, double bytes_per_s) {
        return base_s + 2 * ((of_machine - 1) * hop_s + std::log2(machines) * network_s) + bytes / bytes_per_s;
    };
    return std::min({time_s(8.4e-6, step_s, moved / rate) + 2 * (machines - 1) * (14e-6 - step_s),
                     tree_s(6.8e-6, ll_step_s, 5e-6, std::min(39e9, rate / 3.8) / 2 * 0.5),
                     tree_s(14e-6, pcie ? 1.9e-6 : 1.25e-6, 8.5e-6, 0.86 * rate / 2 * 0.6)});
}

/// Returns the seconds with a serving library's own kernels, which read the peers' memory: one-shot (every card reads
/// everything) or two-shot (reduce-scatter, then all-gather). They handle messages up to 8 MiB between two cards or
/// over fully connected links (vLLM, csrc/custom_all_reduce.cuh; TensorRT-LLM, customAllReduceKernels). Longer
/// messages, those of more cards over PCIe, those through the host's memory and those between machines use NCCL.
/// Source: times of both libraries on A100 and H100 SXM; docs/language-models.md.
[[nodiscard]] inline double served_all_reduce_s(double bytes, std::int64_t cards, const Link& link, double calls = 1) {
    constexpr double longest_bytes = 8 << 20, least_switched_bytes_per_s = 100e9;
    const bool joined = real(cards) <= link.cards && (cards == 2 || link.bytes_per_s >= least_switched_bytes_per_s);
    const double ring_s = all_reduce_s(bytes, cards, link, calls);
    if (calls > 1 || cards < 2 || bytes > longest_bytes || !joined || !link.own_kernels || link.kind == LinkKind::host)
        return ring_s;
    const double others = real(cards - 1), wire_s = bytes / link.bytes_per_s;
    const double one_shot_s = 4.8e-6 + others * wire_s / 0.6;
    const double two_shot_s = 12e-6 + 2 * others / real(cards) * wire_s / 0.5;
    return std::min({one_shot_s, two_shot_s, ring_s});
}

}  // namespace ftax::kernels
