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
FrameworkProfile placed(RunArguments run, std::vector<HostGroup> groups = {{0.4, 1, 0.1}, {0.6, 2, 0.08}}) {
    FrameworkProfile profile{.framework = "pytorch-eager", .version = "2.5", .host = "reference"};
    profile.parameters = {{"host.scale", groups.empty() ? 1 : groups.back().scale, 0.42, "planted"}};
    profile.reference_cpu = "Intel Xeon Platinum 8480+";
    profile.groups = std::move(groups);
    place_host(profile, run);
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
    const Cpu cpu = cpu_named("Intel Xeon Platinum 8480+");
    CHECK(cpu.score == 1902);
    for (const char* spelled :
         {"Intel(R) Xeon(R) Platinum 8480+ CPU @ 2.00GHz", "Xeon Platinum 8480+", "8480+", "platinum 8480+"}) {
        CAPTURE(std::string(spelled));
        CHECK(cpu_named(spelled).name == cpu.name);
    }
    CHECK(cpu_named("AMD EPYC 7742 64-Core Processor").name == "AMD EPYC 7742");
    CHECK(cpu_named("8480C").name != cpu.name);
    for (const char* unknown :
         {"Intel(R) Xeon(R) Processor", "AMD EPYC", "Neoverse-V2", "", "@", "(r)(tm)", "64-core"}) {
        CAPTURE(std::string(unknown));
        CHECK_THROWS_AS(static_cast<void>(cpu_named(unknown)), Error);
        CHECK_FALSE(is_known_cpu(unknown));
    }
}

TEST_CASE("the name of a CPU moves and narrows the host, its load picks a group of machines") {
    const FrameworkProfile unknown = placed({});
    CHECK(scale_of(unknown) == 2);
    CHECK(stddev_of(unknown) == 0.42);
    CHECK(unknown.host == "reference");

    const double slower = 1902.0 / 1105;  // E5-2698 v4
    const FrameworkProfile named = placed({.cpu = "E5-2698 v4"});
    CHECK(scale_of(named) == approx(2 * slower));
    CHECK(stddev_of(named) <= 0.42);
    CHECK(named.host == "reference on Intel Xeon E5-2698 v4");

    const FrameworkProfile dedicated = placed({.cpu = "E5-2698 v4", .host_load = "dedicated"});
    CHECK(scale_of(dedicated) == approx(slower));
    CHECK(stddev_of(dedicated) == approx(0.19));
    const FrameworkProfile shared = placed({.host_load = "shared"});
    CHECK(scale_of(shared) == approx(2));
    CHECK(stddev_of(shared) < stddev_of(unknown));

    const FrameworkProfile alone = placed({.cpu = "E5-2698 v4"}, {});
    CHECK(scale_of(alone) == approx(slower));
    CHECK(stddev_of(alone) == approx(0.24));
    CHECK(stddev_of(placed({.cpu = "E5-2698 v4", .host_load = "dedicated"}, {})) == approx(0.19));
}

TEST_CASE("a machine's own profile is not moved, and costs without a reference machine say so") {
    RunArguments run{.host = "help-pytorch-1.8", .cpu = "8480+"};
    CHECK_THROWS_AS(placed(run), Error);
    FrameworkProfile engine{.framework = "tensorrt", .host = "reference"};
    place_host(engine, {.cpu = "8480+"});
    CHECK(engine.warnings.size() == 1);
    CHECK(engine.host == "reference");
}
