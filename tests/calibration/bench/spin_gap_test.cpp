#include "calibration/bench/cuda/spin_gap.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "tests/approx.hpp"

using namespace ftax::bench;

TEST_CASE("the gap between kernels is the intercept of period over spin time, at any clock") {
    for (const double clock : {1.2e9, 1.98e9}) {
        std::vector<std::pair<double, double>> periods(4);
        for (std::size_t i = 0; i < periods.size(); ++i) {
            const double cycles = 2e-6 * static_cast<double>(1 << i) * 1.98e9;
            periods[i] = {cycles, cycles / clock + 1.1e-6 + (i % 2 == 0 ? 1e-8 : -1e-8)};
        }
        CHECK(spin_gap_s(periods) == approx(1.1e-6).epsilon(0.02));
    }
}
