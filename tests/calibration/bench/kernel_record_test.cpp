#include "calibration/bench/kernel_record.hpp"

#include <doctest/doctest.h>

#include "tests/approx.hpp"

using namespace ftax::bench;

TEST_CASE("kernels that overlap have no gap, whatever order their records come in") {
    std::vector<KernelRecord> kernels(3);
    kernels[0].start_ns = 500, kernels[0].end_ns = 600;
    kernels[1].start_ns = 100, kernels[1].end_ns = 450;
    kernels[2].start_ns = 200, kernels[2].end_ns = 300;
    const auto gaps = gaps_s(kernels);
    REQUIRE(gaps.size() == 2);
    CHECK(gaps[0] == 0);
    CHECK(gaps[1] == approx(50e-9));
    CHECK(busy_s(kernels) == approx(450e-9));  // 100 to 450 and 500 to 600
    CHECK(busy_s({}) == 0);
}
