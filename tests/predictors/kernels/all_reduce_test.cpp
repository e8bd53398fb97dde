#include "predictors/kernels/all_reduce.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "tests/approx.hpp"

using namespace ftax;
using namespace ftax::kernels;

// NCCL 2.18, src/graph/tuning.cc: a ring of n cards takes 2 (n - 1) steps and moves 2 (n - 1) / n of the message.

TEST_CASE("NCCL's ring takes the faster of two protocols") {
    constexpr double bandwidth = 300e9;
    for (const int cards : {2, 4, 8}) {
        const double steps = 2.0 * (cards - 1);
        for (const double bytes : {1e3, 1e5, 1e7, 1e9}) {
            const double wire_s = steps / cards * bytes / (0.8 * bandwidth), copied = steps / cards + 0.5;
            const double short_s = 6.6e-6 + steps * 0.6e-6 + 2 * wire_s;
            const double long_s = 8.4e-6 + steps * 3.4e-6 + copied * bytes / (0.96 * bandwidth);
            CHECK(all_reduce_s(bytes, cards, Link{.bytes_per_s = bandwidth}) == approx(std::min(short_s, long_s)));
        }
        CHECK(all_reduce_s(1e3, cards, Link{.bytes_per_s = bandwidth}) < 8.4e-6 + steps * 3.4e-6);
    }
    CHECK(all_reduce_s(1e6, 1, Link{.bytes_per_s = bandwidth}) == 0);
}

// AIConfigurator 0.12, custom_allreduce_perf of vLLM 0.19: long messages, for which the engines call NCCL. Only A100
// and H100 were fitted.
TEST_CASE("long messages take as long as measured, on cards that were not fitted as well") {
    constexpr double mib = 1 << 20;
    const auto us = [](const char* card, double bytes, int cards) {
        return 1e6 * served_all_reduce_s(bytes, cards, link_of(device_spec(card)));
    };
    CHECK(us("h100-sxm5-80gb", 128 * mib, 2) == approx(465).epsilon(0.05));
    CHECK(us("h200-sxm-141gb", 128 * mib, 4) == approx(609).epsilon(0.1));
    CHECK(us("b200", 128 * mib, 2) == approx(281).epsilon(0.15));
    CHECK(us("b300", 128 * mib, 4) == approx(352).epsilon(0.1));
    CHECK(us("b200", 512 * mib, 8) == approx(1336).epsilon(0.1));
    // The switches of H100 and H200 sum from five cards on; NCCL_NVLS_ENABLE=0 leaves it to the ring (vLLM 0.14).
    CHECK(us("h100-sxm5-80gb", 128 * mib, 8) == approx(575).epsilon(0.05));
    CHECK(us("h200-sxm-141gb", 512 * mib, 8) == approx(2050).epsilon(0.05));
    Link ring = link_of(device_spec("h100-sxm5-80gb"));
    ring.switch_share = 0;
    CHECK(1e6 * all_reduce_s(512 * mib, 8, ring) == approx(2632).epsilon(0.15));
    CHECK(link_of(device_spec("b200")).switch_share == 0);
    CHECK(link_of(device_spec("a100-sxm4-80gb")).switch_share == 0);
}

TEST_CASE("a serving library sums messages up to 8 MiB itself, between two cards or over links that join all") {
    constexpr Link switched{.bytes_per_s = 300e9}, pcie{LinkKind::peer, 25e9};
    for (const double bytes : {1e4, 1e6, 8.0 * (1 << 20)}) {
        CHECK(served_all_reduce_s(bytes, 8, switched) < all_reduce_s(bytes, 8, switched));
        CHECK(served_all_reduce_s(bytes, 8, pcie) == all_reduce_s(bytes, 8, pcie));
    }
    CHECK(served_all_reduce_s(1e4, 2, pcie) < all_reduce_s(1e4, 2, pcie));
    for (const double bytes : {8.0 * (1 << 20) + 1, 64e6, 1e9})
        CHECK(served_all_reduce_s(bytes, 8, switched) == all_reduce_s(bytes, 8, switched));
    // One shot reads what the others have; two shots twice a share of it, in 12 us more or less.
    CHECK(served_all_reduce_s(1e3, 4, switched) == approx(4.8e-6 + 3 * 1e3 / 300e9 / 0.6));
}

TEST_CASE("a link through the memory of the host, and --no-custom-all-reduce, leave sums to NCCL") {
    const Link host{.kind = LinkKind::host, .bytes_per_s = 5e9, .ring_share = 1},
        without{.bytes_per_s = 300e9, .own_kernels = false};
    CHECK(served_all_reduce_s(1e4, 2, host) == all_reduce_s(1e4, 2, host));
    CHECK(served_all_reduce_s(1e4, 8, without) == all_reduce_s(1e4, 8, Link{.bytes_per_s = 300e9}));
    // Steps over PCIe take 1.0 and 5.7 us, and nothing of the rate is lost to the link's protocol.
    CHECK(all_reduce_s(8, 4, host) == approx(6.6e-6 + 6 * 1e-6).epsilon(0.001));
    CHECK(all_reduce_s(1e9, 4, host) == approx(8.4e-6 + 6 * 5.7e-6 + 1.5 * 1e9 / 5e9));
}

TEST_CASE("a gather and a scatter are two calls of NCCL, whatever kernels the engine has") {
    const Link h200{.bytes_per_s = 450e9}, b200{.bytes_per_s = 900e9}, host{LinkKind::host, 5e9};
    CHECK(served_all_reduce_s(8, 4, h200, 2) == approx(2 * 8.5e-6 + 6 * 0.85e-6).epsilon(0.001));
    CHECK(served_all_reduce_s(8, 4, host, 2) == approx(all_reduce_s(8, 4, host) + 6.6e-6).epsilon(0.001));
    // NCCL 2.26 and 2.27 on cards that were not fitted (AIConfigurator 0.4, all_gather and reduce_scatter of halves).
    CHECK(served_all_reduce_s(2e6, 4, h200, 2) == approx(39.0e-6).epsilon(0.25));
    CHECK(served_all_reduce_s(4 << 20, 4, h200, 2) == approx(72.3e-6).epsilon(0.25));
    CHECK(served_all_reduce_s(32 << 20, 8, h200, 2) == approx(239e-6).epsilon(0.25));
    CHECK(served_all_reduce_s(8 << 20, 2, b200, 2) == approx(59.5e-6).epsilon(0.25));
    CHECK(served_all_reduce_s(32 << 20, 4, b200, 2) == approx(144e-6).epsilon(0.25));
}

TEST_CASE("cards that their link does not join are summed over a network, by trees where messages are short") {
    const Link link{.bytes_per_s = 450e9}, rack{.bytes_per_s = 450e9, .cards = 72};
    CHECK(all_reduce_s(64, 16, rack) == all_reduce_s(64, 16, Link{.bytes_per_s = 450e9, .cards = 16}));
    // NCCL's log on two machines of eight H100: 64 bytes -> Algo 0 proto 0 time 25.207382 (NVIDIA/nccl, issue 1453).
    CHECK(all_reduce_s(64, 16, link) == approx(25.207e-6).epsilon(0.001));
    CHECK(all_reduce_s(64, 32, link) == approx(35.2e-6).epsilon(0.001));
    // LL128: base 14 us, seven steps of 1.25 us and one of 8.5 up and down, at 0.86 of the link's 360 GB/s.
    CHECK(all_reduce_s(1e6, 16, link) == approx(48.5e-6 + 1e6 / (0.86 * 360e9 / 2 * 0.6)));
    const double ring_s = 8.4e-6 + 28 * 3.4e-6 + 2 * 14e-6;
    CHECK(all_reduce_s(1e9, 16, link) == approx(ring_s + 2 * 15.0 / 16 * 1e9 / 360e9));
    // A slower network is the limit: 8 x 5 GB/s.
    const Link slow{.bytes_per_s = 450e9, .network_bytes_per_s = 5e9};
    CHECK(all_reduce_s(1e9, 16, slow) == approx(ring_s + 2 * 15.0 / 16 * 1e9 / 40e9));
    CHECK(served_all_reduce_s(1e4, 16, link) == all_reduce_s(1e4, 16, link));
    CHECK(served_all_reduce_s(1e4, 16, rack) < all_reduce_s(1e4, 16, rack));
    CHECK(link_of(device_spec("h100-sxm5-80gb")).cards == 8);
    CHECK(link_of(device_spec("gb200")).cards == 72);
    const std::vector<Parameter> machine{{std::string(link_cards), 4, 0, ""}, {std::string(link_network), 25e9, 0, ""}};
    CHECK(link_of(device_spec("gb200"), machine).cards == 4);
    CHECK(link_of(device_spec("gb200"), machine).network_bytes_per_s == 25e9);
}

TEST_CASE("a card's link is NVLink, PCIe with peer access or the memory of the host, unless the machine's is known") {
    const auto kind = [](const char* card) { return link_of(device_spec(card)).kind; };
    CHECK(kind("h100-sxm5-80gb") == LinkKind::nvlink);
    CHECK(kind("l40s") == LinkKind::peer);
    CHECK(kind("a10g") == LinkKind::host);
    CHECK(kind("rtx-4090") == LinkKind::host);
    CHECK(link_of(device_spec("a10g"), {}).bytes_per_s == approx(5e9).epsilon(0.02));
    const std::vector<Parameter> machine{{std::string(link_rate), 12e9, 0, ""}, {std::string(link_kernels), 0, 0, ""}};
    CHECK(link_of(device_spec("a10g"), machine).bytes_per_s == 12e9);
    CHECK_FALSE(link_of(device_spec("a10g"), machine).own_kernels);
    CHECK(link_of(device_spec("a10g"), machine).ring_share == 1);
    // NCCL goes through the host between peers of which it is not known whether they share a switch.
    CHECK(link_of(device_spec("l40s")).ring_share == 0.16);
    CHECK(link_of(device_spec("h100-sxm5-80gb")).ring_share == 0.8);
    // Through PCIe cards with NVLink have the rate of their slot.
    const std::vector<Parameter> peer{{std::string(link_kind), 1, 0, ""}};
    CHECK(link_of(device_spec("h100-sxm5-80gb"), peer).kind == LinkKind::peer);
    CHECK(link_of(device_spec("h100-sxm5-80gb"), peer).bytes_per_s == 63e9);
    CHECK(link_of(device_spec("l40s"), peer).ring_share == 0.8);
}
