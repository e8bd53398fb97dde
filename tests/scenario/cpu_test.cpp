#include "src/scenario/cpu.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "ftax/error.hpp"
#include "predictors/host/host_costs.hpp"
#include "src/core/parameters.hpp"
#include "tests/approx.hpp"

using namespace ftax;
using namespace ftax::scenario;

namespace {

/// A reference machine of two groups, the slow one twice as slow, as a run with these arguments has it.
FrameworkProfile placed(const RunArguments& run, std::vector<HostGroup> groups = {{0.4, 1, 0.1}, {0.6, 2, 0.08}}) {
    Scenario scenario;
    FrameworkProfile& profile = scenario.framework;
    profile = {.framework = "pytorch-eager", .version = "2.5", .host = "reference"};
    profile.parameters = {{"host.scale", groups.empty() ? 1 : groups.back().scale, 0.42, "planted"}};
    profile.reference_cpu = "Intel Xeon Platinum 8480+";
    profile.groups = std::move(groups);
    place_host(scenario, run);
    return profile;
}

double scale_of(const FrameworkProfile& profile) {
    return host_parameter(profile, "host.scale");
}

double stddev_of(const FrameworkProfile& profile) {
    return find_parameter(profile.parameters, "host.scale")->relative_stddev;
}

}  // namespace

TEST_CASE("a CPU is found by any spelling that names one") {
    const Cpu cpu = find_cpu("Intel Xeon Platinum 8480+").value();
    CHECK(cpu.score == 1902);
    for (const char* spelled :
         {"Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz", "Xeon Platinum 8480+", "8480+", "platinum 8480+"}) {
        CAPTURE(std::string(spelled));
        CHECK(find_cpu(spelled).value().name == cpu.name);
    }
    CHECK(find_cpu("AMD EPYC 7742 64-Core Processor").value().name == "AMD EPYC 7742");
    for (const char* unknown :
         {"Intel(R) Xeon(R) Processor", "AMD EPYC", "Neoverse-V2", "", "@", "(r)(tm)", "64-core"}) {
        CAPTURE(std::string(unknown));
        CHECK_FALSE(find_cpu(unknown));
        if (*unknown) CHECK_THROWS_AS(placed({.cpu = unknown}), Error);
    }
}

TEST_CASE("the name of a CPU moves and narrows the host, its load picks a group of machines") {
    const FrameworkProfile unknown = placed({});
    CHECK(scale_of(unknown) == 2);
    CHECK(stddev_of(unknown) == 0.42);
    CHECK(unknown.host == "reference");
    CHECK(unknown.assumed ==
          "CPU unknown, load unknown: 2 × the time of Intel Xeon Platinum 8480+, 1 × on 40 % of machines");

    const double slower = 1902.0 / 1105;  // E5-2698 v4
    const FrameworkProfile named = placed({.cpu = "E5-2698 v4"});
    CHECK(scale_of(named) == approx(2 * slower));
    CHECK(stddev_of(named) <= 0.42);
    CHECK(named.host == "reference");

    const FrameworkProfile dedicated = placed({.cpu = "E5-2698 v4", .host_load = "dedicated"});
    CHECK(scale_of(dedicated) == approx(slower));
    CHECK(stddev_of(dedicated) == approx(0.19));
    CHECK(dedicated.assumed == "Intel Xeon E5-2698 v4, load dedicated: 1.7 × the time of Intel Xeon Platinum 8480+");
    const FrameworkProfile shared = placed({.host_load = "shared"});
    CHECK(scale_of(shared) == approx(2));
    CHECK(stddev_of(shared) == approx(0.36));
    CHECK(scale_of(placed({.host_load = "dedicated"})) == approx(1));

    const FrameworkProfile alone = placed({.cpu = "E5-2698 v4"}, {});
    CHECK(scale_of(alone) == approx(slower));
    CHECK(stddev_of(alone) == approx(0.24));
    REQUIRE(alone.groups.size() == 1);  // what anchor rows start from
    CHECK(alone.groups[0].log_stddev == approx(0.24));
    CHECK(placed({}, {}).groups.empty());
    CHECK(stddev_of(placed({.cpu = "E5-2698 v4", .host_load = "dedicated"}, {})) == approx(0.19));
}

TEST_CASE("costs of one machine are not moved and say so, and a device with a CPU of its own keeps its costs") {
    Scenario scenario;
    scenario.framework = {.framework = "tensorrt", .host = "help-pytorch-1.8"};
    place_host(scenario, {});
    CHECK(scenario.framework.warnings.empty());
    place_host(scenario, {.cpu = "8480+"});
    CHECK(scenario.framework.warnings.size() == 1);
    CHECK(scenario.framework.assumed.empty());
    scenario.framework = {.framework = "pytorch-eager", .host = "reference", .parameters = {{"host.scale", 1, 0.42}}};
    scenario.framework.reference_cpu = "Intel Xeon Platinum 8480+";
    scenario.device.device.host_cpu = "Neoverse V2";
    place_host(scenario, {.cpu = "E5-2698 v4"});
    CHECK(scale_of(scenario.framework) == 1);
    CHECK(stddev_of(scenario.framework) == 0.42);
    CHECK(scenario.framework.warnings.size() == 1);
    CHECK(scenario.framework.assumed == "Neoverse V2");
}
