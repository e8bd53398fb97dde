#include <doctest/doctest.h>

#include <algorithm>

#include "predictors/analysis/log_posterior.hpp"
#include "tests/approx.hpp"

using namespace ftax;

TEST_CASE("the widest component of an interval is the one that moves the latency most") {
    HostCosts costs;
    costs.scale_relative_stddev = 0.2;
    costs.call_relative_stddev = 0.4;
    costs.model_relative_stddev = 0.1;
    costs.device_relative_stddev = 0.05;
    DeviceFactors factors;
    const auto at = [](Factor factor) { return static_cast<std::size_t>(factor); };
    factors.covariance[at(Factor::card)][at(Factor::card)] = 0.01;
    factors.covariance[at(Factor::attention)][at(Factor::attention)] = 0.09;
    std::array<double, factor_count> seconds{};
    seconds[at(Factor::gemm)] = 3;
    seconds[at(Factor::attention)] = 1;
    const auto widest = [&](double host_share, double call_share, double extrapolation = 0) {
        const auto all = components(costs, host_share, call_share, factors, seconds, extrapolation, 0);
        return *std::ranges::max_element(all, {}, &Component::log_stddev);
    };

    CHECK(widest(1, 0).name == "the speed of the host's CPU");
    CHECK(widest(1, 0).log_stddev == approx(0.2));
    CHECK(widest(1, 0.5).name == "the host's calls of its library");
    // The card moves all kernels, attention a quarter of them.
    CHECK(widest(0, 0).name == "the card as a whole");
    CHECK(widest(0, 0).log_stddev == approx(0.1));
    seconds[at(Factor::attention)] = 3;
    CHECK(widest(0, 0).name == "attention");
    CHECK(widest(0, 0).log_stddev == approx(0.15));
    CHECK(widest(0, 0, 0.3).name == "runs longer than any measured");

    factors = {};
    costs = {};
    CHECK(widest(0.5, 0).name.empty());
}
