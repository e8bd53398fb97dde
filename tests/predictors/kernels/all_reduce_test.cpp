#include "predictors/kernels/all_reduce.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>

#include "tests/approx.hpp"

using namespace ftax::kernels;

// NCCL 2.18, src/graph/tuning.cc: a ring of n cards takes 2 (n - 1) steps and moves 2 (n - 1) / n of the message.

TEST_CASE("NCCL's ring takes the faster of two protocols") {
    constexpr double bandwidth = 300e9;
    for (const int cards : {2, 4, 8}) {
        const double steps = 2.0 * (cards - 1);
        for (const double bytes : {1e3, 1e5, 1e7, 1e9}) {
            const double wire_s = steps / cards * bytes / (0.8 * bandwidth);
            const double short_s = 6.6e-6 + steps * 0.6e-6 + 2 * wire_s, long_s = 8.4e-6 + steps * 3.4e-6 + wire_s;
            CHECK(all_reduce_s(bytes, cards, bandwidth) == approx(std::min(short_s, long_s)));
        }
        CHECK(all_reduce_s(1e3, cards, bandwidth) < 8.4e-6 + steps * 3.4e-6);
    }
    CHECK(all_reduce_s(1e6, 1, bandwidth) == 0);
}

TEST_CASE("a serving library sums messages up to 8 MiB itself, between two cards or over links that join all") {
    constexpr double switched = 300e9, pcie = 25e9;
    for (const double bytes : {1e4, 1e6, 8.0 * (1 << 20)}) {
        CHECK(served_all_reduce_s(bytes, 8, switched) < all_reduce_s(bytes, 8, switched));
        CHECK(served_all_reduce_s(bytes, 8, pcie) == all_reduce_s(bytes, 8, pcie));
    }
    CHECK(served_all_reduce_s(1e4, 2, pcie) < all_reduce_s(1e4, 2, pcie));
    for (const double bytes : {8.0 * (1 << 20) + 1, 64e6, 1e9})
        CHECK(served_all_reduce_s(bytes, 8, switched) == all_reduce_s(bytes, 8, switched));
    // One shot reads what the others have; two shots twice a share of it, in 12 us more or less.
    CHECK(served_all_reduce_s(1e3, 4, switched) == approx(4.8e-6 + 3 * 1e3 / switched / 0.6));
}
