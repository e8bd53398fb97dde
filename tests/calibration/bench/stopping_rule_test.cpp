#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "calibration/bench/measurement_loop.hpp"
#include "tests/approx.hpp"

using namespace ftax::bench;

TEST_CASE("measuring stops once samples are many, long and agree") {
    StoppingRule rule(StoppingLimits{});
    for (int i = 0; i < 9; ++i) rule.add(0.1, 0.1);
    CHECK_FALSE(rule.reason());  // 0.9 s, but nine samples
    rule.add(0.1, 0.1);
    CHECK(rule.reason() == StopReason::converged);
}

TEST_CASE("many short samples are not enough") {
    StoppingRule rule(StoppingLimits{});
    for (int i = 0; i < 400; ++i) rule.add(1e-3, 1e-3);
    CHECK_FALSE(rule.reason());  // 0.4 s
    for (int i = 0; i < 101; ++i) rule.add(1e-3, 1e-3);
    CHECK(rule.reason() == StopReason::converged);
}

TEST_CASE("noise that does not shrink any more ends measuring, and is named") {
    StoppingRule rule(StoppingLimits{});
    int samples = 0;
    while (!rule.reason()) {
        rule.add(samples % 2 == 0 ? 0.02 : 0.03, 0.025);  // 20 % either way, forever
        ++samples;
    }
    CHECK(rule.reason() == StopReason::noise_settled);
    CHECK(samples >= 16);
    CHECK(samples < 100);
}

TEST_CASE("noisy samples are enough once their mean is known well") {
    const StoppingLimits limits{.min_samples = 10, .min_total_s = 0, .settled_change = 0, .relative_interval = 0.01};
    StoppingRule rule(limits);
    int samples = 0;
    while (!rule.reason()) {
        ++samples;
        rule.add(samples % 2 == 0 ? 0.95 : 1.05, 0.001);  // 5 % noise: 1.96 · 0.05 / √n < 0.01 from n = 97 on
    }
    CHECK(*rule.reason() == StopReason::known_well);
    CHECK(samples >= 96);
    CHECK(samples <= 99);
    StoppingRule without({.min_samples = 10, .min_total_s = 0, .settled_change = 0});
    for (int i = 0; i < 200; ++i) without.add(i % 2 == 0 ? 0.95 : 1.05, 0.001);
    CHECK_FALSE(without.reason());
}

TEST_CASE("noise that keeps changing is cut off by the time limit") {
    StoppingRule rule(StoppingLimits{});
    double seconds = 0.01;
    int samples = 0;
    for (; !rule.reason(); ++samples) rule.add(seconds *= 1.3, 0.25);
    CHECK(rule.reason() == StopReason::time_limit);
    CHECK(samples == 60);  // 15 s of 0.25 s
}

TEST_CASE("relative standard deviation of a few numbers") {
    CHECK(relative_stddev(std::array{1.0, 3.0}) == approx(std::sqrt(2.0) / 2));
    CHECK(relative_stddev(std::array{5.0}) == 0);
}
