#include "calibration/bench/watched_device.hpp"

#include <doctest/doctest.h>

#include "tests/calibration/bench/fake_device.hpp"

using namespace ftax::bench;
using ftax::bench::test::FakeDevice;

namespace {

struct Machine {
    std::optional<double> clock_ratio = 0.97;
    std::optional<int> processes = 1;
    std::optional<bool> mig = false;
    std::string slowdown = "power cap";

    WatchedDevice device() {
        return WatchedDevice(std::make_unique<FakeDevice>(), {.driver = "580.1",
                                                              .mig = mig,
                                                              .clock_ratio = [this] { return clock_ratio; },
                                                              .slowdown = [this] { return slowdown; },
                                                              .other_processes = [this] { return processes; }});
    }
};

Sample sampled(WatchedDevice& device) {
    return std::get<Sample>(device.sample());
}

}  // namespace

TEST_CASE("each sample carries the clock it ran at and what held it down") {
    Machine machine;
    WatchedDevice device = machine.device();
    CHECK(device.warnings().empty());
    REQUIRE_FALSE(device.prepare({.id = "a"}));
    CHECK(sampled(device).clock_ratio == 0.97);
    CHECK(sampled(device).slowdown == "power cap");
    machine.clock_ratio = 0.5;
    CHECK(sampled(device).clock_ratio == 0.5);
    CHECK(device.environment() == Environment{{"device", "fake"}, {"driver", "580.1"}, {"mig", "off"}});
}

TEST_CASE("a framework that does not name its GPU has the name that the driver gives") {
    auto libtorch = std::make_unique<FakeDevice>();
    libtorch->about = {{"framework_version", "2.11"}};
    const WatchedDevice device(std::move(libtorch), {.name = "NVIDIA H200", .driver = "580.1"});
    CHECK(device.environment() ==
          Environment{{"framework_version", "2.11"}, {"device", "NVIDIA H200"}, {"driver", "580.1"}});
}

TEST_CASE("BAD_INPUTS 46: somebody who comes to the GPU disturbs, our own worker does not") {
    Machine machine;
    WatchedDevice device = machine.device();
    REQUIRE_FALSE(device.prepare({.id = "a"}));
    CHECK_FALSE(sampled(device).disturbed);
    machine.processes = 2;
    CHECK(sampled(device).disturbed);
    machine.processes = 1;
    CHECK_FALSE(sampled(device).disturbed);
}

TEST_CASE("BAD_INPUTS 46: MIG, other processes and a GPU without NVML data cause warnings") {
    Machine machine;
    machine.mig = true;
    machine.processes = 3;
    machine.clock_ratio = std::nullopt;
    WatchedDevice device = machine.device();
    const auto warnings = device.warnings();
    REQUIRE(warnings.size() == 3);
    CHECK(warnings[0].find("MIG is on") != std::string::npos);
    CHECK(warnings[1].find("clock") != std::string::npos);
    CHECK(warnings[2].find("another process") != std::string::npos);
    machine.processes = std::nullopt;
    REQUIRE_FALSE(device.prepare({.id = "a"}));
    CHECK_FALSE(sampled(device).disturbed);
}
