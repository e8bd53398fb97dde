#include "predictors/timeline/timeline.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "ftax/equations.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

std::vector<TimedLaunch> random_launches(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> microseconds(0, 50e-6);
    std::vector<TimedLaunch> launches(std::uniform_int_distribution<>(1, 200)(random));
    for (TimedLaunch& launch : launches) {
        launch.host_s = microseconds(random);
        launch.kernels = std::uniform_int_distribution<>(0, 2)(random);
        if (launch.kernels > 0) launch.device_s = microseconds(random);
    }
    return launches;
}

double host_sum(const std::vector<TimedLaunch>& launches) {
    double sum = 0;
    for (const TimedLaunch& launch : launches) sum += launch.host_s;
    return sum;
}

double device_sum(const std::vector<TimedLaunch>& launches) {
    double sum = 0;
    for (const TimedLaunch& launch : launches) sum += launch.device_s;
    return sum;
}

}  // namespace

TEST_CASE("the timeline is never below the closed form and never above host plus device") {
    std::vector<Span> spans;
    for (unsigned seed = 0; seed < 50; ++seed) {
        const auto launches = random_launches(seed);
        const double latency_s = simulate(launches, {}, spans);
        const double host_s = host_sum(launches);
        const double device_s = device_sum(launches);
        CHECK(latency_s >= equations::closed_form_s(host_s, device_s) - 1e-12);
        CHECK(latency_s <= host_s + device_s + 1e-12);
    }
}

TEST_CASE("without host cost the latency is the kernel sum, without kernels the host sum") {
    std::vector<Span> spans;
    auto launches = random_launches(7);
    auto free_host = launches;
    for (TimedLaunch& launch : free_host) launch.host_s = 0;
    CHECK(simulate(free_host, {}, spans) == approx(device_sum(launches)));
    for (TimedLaunch& launch : launches) launch.kernels = 0, launch.device_s = 0;
    CHECK(simulate(launches, {}, spans) == approx(host_sum(launches)));
}

TEST_CASE("a kernel starts when its launch has arrived and the kernel before it has ended") {
    const std::vector<TimedLaunch> launches{{10e-6, 30e-6, 1}, {5e-6, 4e-6, 1}, {40e-6, 8e-6, 1}};
    std::vector<Span> spans;
    const double latency_s = simulate(launches, {.launch_latency_s = 2e-6, .kernel_gap_s = 1e-6}, spans);
    CHECK(spans[0].device_start_s == approx(12e-6));  // 10 host + 2 launch
    CHECK(spans[1].device_start_s == approx(43e-6));  // first ends at 42, gap 1
    CHECK(spans[2].device_start_s == approx(57e-6));  // host 55 + 2: the device waited
    CHECK(latency_s == approx(65e-6));
}

TEST_CASE("back to back the slower of host and device sets the pace") {
    const auto launches = random_launches(11);
    double gaps_s = 0;
    for (const TimedLaunch& launch : launches) gaps_s += 1e-6 * launch.kernels;
    const double device_s = device_sum(launches) + gaps_s;
    CHECK(period(launches, {.launch_latency_s = 2e-6, .kernel_gap_s = 1e-6}) ==
          approx(std::max(host_sum(launches), device_s)));
}

TEST_CASE("the period is what each further run adds to many simulated ones") {
    for (unsigned seed = 0; seed < 20; ++seed) {
        auto launches = random_launches(seed);
        if (seed % 2 == 0) launches[launches.size() / 2].synchronizes = true;
        const TimelineOptions options{
            .launch_latency_s = 2e-6, .kernel_gap_s = 1e-6, .queue_depth = 1 << 20, .blocking = seed % 5 == 4};
        std::vector<TimedLaunch> many;
        for (int run = 0; run < 60; ++run) many.insert(many.end(), launches.begin(), launches.end());
        std::vector<TimedLaunch> half(many.begin(), many.begin() + static_cast<std::ptrdiff_t>(many.size() / 2));
        std::vector<Span> spans;
        const double further_s = simulate(many, options, spans) - simulate(half, options, spans);
        CHECK(period(launches, options) == approx(further_s / 30).epsilon(0.01));
    }
}

TEST_CASE("a full launch queue blocks the host until the device has started enough kernels") {
    const std::vector<TimedLaunch> launches(10, {1e-6, 100e-6, 1});
    std::vector<Span> spans;
    simulate(launches, {.queue_depth = 4}, spans);
    CHECK(spans[3].host_end_s == approx(4e-6));
    CHECK(spans[9].host_start_s == approx(spans[5].device_start_s));
    const double unlimited_s = simulate(launches, {}, spans);
    CHECK(spans[9].host_start_s == approx(9e-6));
    CHECK(unlimited_s == approx(1001e-6));
}

TEST_CASE("a synchronisation makes the host wait, a blocking device always does") {
    const std::vector<TimedLaunch> launches{{1e-6, 50e-6, 1, true}, {1e-6, 50e-6, 1}};
    std::vector<Span> spans;
    simulate(launches, {}, spans);
    CHECK(spans[1].host_start_s == approx(51e-6));
    const std::vector<TimedLaunch> two(2, {1e-6, 50e-6, 1});
    CHECK(simulate(two, {.blocking = true}, spans) == approx(102e-6));
}

TEST_CASE("a call that launches kernels for each step overlaps with them") {
    std::vector<Span> spans;
    const TimelineOptions options{.launch_latency_s = 1e-6};
    const auto alone = [&](double host_s, double device_s) {
        return simulate(std::vector{TimedLaunch{host_s, device_s, 1, false, host_s - 10e-6}}, options, spans);
    };
    CHECK(alone(100e-6, 300e-6) == approx(311e-6));  // the device decides, from the first launch on
    CHECK(alone(300e-6, 100e-6) == approx(301e-6));  // the host does, up to the last
    const std::vector<TimedLaunch> both{{100e-6, 300e-6, 1, false, 90e-6}, {5e-6, 0, 0, true}};
    CHECK(period(both, options) == approx(315e-6).epsilon(0.02));
}
