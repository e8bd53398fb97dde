#include "predictors/analysis/crossings.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace ftax;

namespace {

/// A time that grows with the batch: constant + slope · batch^power, rounded up to steps as tiles are.
struct Curve {
    double constant, slope, power, step;
    double operator()(double batch) const { return constant + slope * std::pow(std::ceil(batch / step) * step, power); }
};

}  // namespace

TEST_CASE("host and device are equal at every crossing of random curves, and keep their order between them") {
    std::mt19937 random(7);
    const auto between = [&](double low, double high) {
        return low * std::pow(high / low, std::uniform_real_distribution<>(0, 1)(random));
    };
    constexpr std::int64_t largest = 4096;
    int crossings = 0, reversed = 0, several = 0;
    for (int round = 0; round < 300; ++round) {
        CAPTURE(round);
        Curve host{between(1e-3, 1e-1), between(1e-6, 1e-3), between(0.3, 1), 1};
        Curve device{between(1e-4, 1e-1), between(1e-6, 1e-2), between(0.3, 1), between(1, 3)};
        if (round % 3 == 0) {  // a straight host meets a device whose time flattens at two batches
            device = {between(1e-4, 1e-2), between(1e-3, 1e-2), 0.5, 1};
            const double first = std::round(between(4, 40)), second = std::round(between(400, 3000));
            host.power = 1;
            host.slope = (device(second) - device(first)) / (second - first);
            host.constant = device(first) - host.slope * first;
        }
        const auto sides = [&](std::int64_t at) {
            const auto batch = static_cast<double>(at);
            return TwoSides{host(batch), device(batch)};
        };
        const auto log_ratio = [&](std::int64_t at) { return std::log(sides(at).device_s / sides(at).host_s); };
        const auto found = find_crossings(1, largest, sides);
        several += found.size() > 1 ? 1 : 0;
        std::int64_t from = 1;
        bool host_decides = log_ratio(1) < 0;
        const auto check_until = [&](std::int64_t end) {
            for (std::int64_t batch = from; batch <= end; ++batch) {
                const double ratio = log_ratio(batch);
                if (std::abs(ratio) > 0.06 && (ratio < 0) != host_decides)
                    FAIL_CHECK("batch " << batch << ": " << ratio);
            }
        };
        for (const Crossing& crossing : found) {
            CHECK(static_cast<double>(crossing.below) <= crossing.at);
            CHECK(crossing.at <= static_cast<double>(crossing.above));
            // Neighbours lie on different sides, so that the curves meet between them.
            CHECK((log_ratio(crossing.below) < 0) != (log_ratio(crossing.above) < 0));
            CHECK(crossing.above - crossing.below <= std::max<std::int64_t>(1, crossing.below / 1024));
            check_until(crossing.below);
            CHECK(crossing.host_decides_above != host_decides);
            host_decides = crossing.host_decides_above;
            reversed += host_decides ? 1 : 0;
            from = crossing.above;
            ++crossings;
        }
        check_until(largest);
    }
    CHECK(crossings > 100);
    CHECK(reversed > 10);
    CHECK(several > 3);
}

TEST_CASE("a host that schedules sequences overtakes a device that reads its weights, and is overtaken again") {
    const auto found = find_crossings(1, 4096, [](std::int64_t at) {
        const auto batch = static_cast<double>(at);
        return TwoSides{1e-3 + 80e-6 * batch, std::max(9e-3, 0.1e-6 * batch * batch)};
    });
    REQUIRE(found.size() == 2);
    CHECK(found[0].host_decides_above);
    CHECK(found[0].at == doctest::Approx(100));
    CHECK_FALSE(found[1].host_decides_above);
    CHECK(found[1].at == doctest::Approx(812.31).epsilon(1e-3));
}

TEST_CASE("curves that run level do not cross at every step") {
    const auto found = find_crossings(1, 4096, [](std::int64_t at) {
        const double batch = static_cast<double>(at);
        return TwoSides{1e-3 * batch, 1e-3 * batch * (at % 2 == 0 ? 1.005 : 0.995)};
    });
    CHECK(found.size() <= 1);
}
