#include "src/scenario/cpu.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "ftax/error.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/profiles/parameters.hpp"
#include "tests/approx.hpp"
#include "tests/failure.hpp"
#include "tests/temporary_folder.hpp"

using namespace ftax;
using namespace ftax::scenario;

namespace {

/// A reference machine of two groups, the slow one twice as slow, as a run with these arguments has it.
FrameworkProfile placed(const RunArguments& run, std::vector<HostGroup> groups = {{0.4, 1, 0.1}, {0.6, 2, 0.08}},
                        Architecture card = Architecture::turing,
                        const char* reference_cpu = "Intel Xeon Platinum 8480+", double stddev = 0.42,
                        const char* name = "", double memory_bytes = 0) {
    Scenario scenario;
    scenario.device.device.architecture = card;
    scenario.device.device.name = name;
    scenario.device.device.memory_bytes = memory_bytes;
    FrameworkProfile& profile = scenario.framework;
    profile = {.framework = "pytorch-eager", .version = "2.5", .host = "reference"};
    profile.parameters = {{"host.scale", groups.empty() ? 1 : groups.back().scale, stddev, "planted"}};
    profile.reference_cpu = reference_cpu;
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

TEST_CASE("a card of a newer bus is in a server of a newer CPU where none is named") {
    const auto scale = [](Architecture card, const RunArguments& run = {}) {
        return scale_of(placed(run, {}, card, "Intel Xeon E5-2630 v4"));
    };
    CHECK(scale(Architecture::turing) == 1);
    CHECK(scale(Architecture::ampere) == approx(951.0 / 1247));
    CHECK(scale(Architecture::ada) == approx(951.0 / 1247));
    CHECK(scale(Architecture::hopper) == approx(0.5));
    CHECK(scale(Architecture::ampere, {.cpu = "E5-2698 v4"}) == approx(951.0 / 1105));
    CHECK(scale_of(placed({}, {}, Architecture::ampere)) == 1);  // the reference is no slower

    const std::vector<HostGroup> groups{{0.4, 1, 0.1}, {0.6, 2, 0.08}, {0.2, 2, 0.6}};
    const FrameworkProfile hopper = placed({}, groups, Architecture::hopper);
    CHECK(scale_of(hopper) == 1);
    REQUIRE(hopper.groups.size() == 3);
    CHECK(hopper.groups[0].weight == approx(7.0 / 8));
    CHECK(hopper.groups[1].weight == approx(1.0 / 8 * 0.75));
    CHECK(hopper.groups[2].weight == approx(1.0 / 8 * 0.25));
    CHECK(hopper.groups[0].log_stddev == 0.24);  // as if its CPU were named
    CHECK(stddev_of(hopper) == stddev_of(placed({.cpu = "8480+"}, groups, Architecture::hopper)));
    CHECK(scale_of(placed({.host_load = "shared"}, groups, Architecture::hopper)) == 2);
    CHECK(placed({}, {}, Architecture::hopper).groups.empty());
}

TEST_CASE("a GeForce card stands in a desktop, except before Ada one with the memory of a server's") {
    const std::vector<HostGroup> groups{{0.4, 1, 0.1}, {0.6, 2, 0.08}};
    const auto of = [&](Architecture card, double gib, const RunArguments& run = {}) {
        return placed(run, groups, card, "Intel Xeon Platinum 8480+", 0.42, "NVIDIA GeForce", gib * 1073741824);
    };
    const double desktop = 1902.0 / 2681;
    CHECK(scale_of(of(Architecture::turing, 11)) == 2);
    CHECK(scale_of(of(Architecture::ampere, 12)) == approx(desktop));
    CHECK(scale_of(of(Architecture::ampere, 24)) == 2);
    CHECK(scale_of(of(Architecture::ada, 24)) == approx(desktop));
    CHECK(scale_of(of(Architecture::rtx_blackwell, 32)) == approx(desktop));
    CHECK(of(Architecture::rtx_blackwell, 32).groups[0].log_stddev == 0.36);
    CHECK(scale_of(of(Architecture::ada, 24, {.cpu = "E5-2698 v4"})) == approx(1902.0 / 1105));
}

TEST_CASE("an unknown host is as uncertain as hosts differ, whatever the machines of a fit did") {
    const auto stddev = [](const RunArguments& run, Architecture card = Architecture::ampere) {
        return stddev_of(placed(run, {}, card, "Intel Xeon E5-2630 v4", 0.23));
    };
    CHECK(stddev({}) == 0.36);
    CHECK(stddev({}, Architecture::hopper) == 0.24);  // as if its CPU were named
    CHECK(stddev({.host_load = "dedicated"}) == 0.33);
    CHECK(stddev({.cpu = "E5-2698 v4"}) == 0.24);
    CHECK(stddev({.cpu = "E5-2698 v4", .host_load = "dedicated"}) == 0.19);
    CHECK(stddev_of(placed({}, {}, Architecture::ampere, "Intel Xeon E5-2630 v4", 0.5)) == 0.5);
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

namespace {

std::string host_text(const std::string& cpu, const std::string& cpu_us, const std::string& wall_us) {
    return R"({"schema_version": 1, "environment": {"cpu": ")" + cpu + R"(", "probe_cpu_median_us": ")" + cpu_us +
           R"(", "probe_wall_median_us": ")" + wall_us + R"("}})";
}

}  // namespace

TEST_CASE("a host file moves the host by its probe, and its wall time picks a group of machines") {
    const test::TemporaryFolder folder;
    const auto file = [&](const std::string& cpu, const std::string& cpu_us, const std::string& wall_us) {
        return folder.write("host.json", host_text(cpu, cpu_us, wall_us));
    };
    const std::string anonymous = "Intel(R) Xeon(R) Processor";
    const FrameworkProfile fast = placed({.host_file = file(anonymous, "0.4", "0.41")});
    const double fast_scale = scale_of(fast);
    CHECK(fast_scale == approx(1).epsilon(0.15));  // the group at 1, on a CPU of nearly the reference's score
    CHECK(stddev_of(fast) == approx(0.24));
    CHECK(fast.assumed.starts_with("CPU unknown, probed 0.40 us, load dedicated: "));

    const FrameworkProfile slow = placed({.host_file = file(anonymous, "0.8", "0.82")});
    CHECK(scale_of(slow) == approx(2 * fast_scale));
    CHECK(stddev_of(slow) == approx(0.24));

    const FrameworkProfile crowded = placed({.host_file = file(anonymous, "0.4", "0.9")});
    CHECK(scale_of(crowded) == approx(2 * fast_scale));  // the slow group
    CHECK(crowded.assumed.find("load shared") != std::string::npos);
    const FrameworkProfile stated = placed({.host_load = "dedicated", .host_file = file(anonymous, "0.4", "0.9")});
    CHECK(scale_of(stated) == approx(fast_scale));
    CHECK(stddev_of(stated) == approx(0.24));

    // A name and a probe that disagree meet in the middle of their logarithms, and are no narrower than one alone.
    const std::string probe = file(anonymous, "0.8", "0.8");
    const double named = scale_of(placed({.cpu = "8480+", .host_load = "dedicated"}));
    const double both = scale_of(placed({.cpu = "8480+", .host_file = probe}));
    CHECK(both == approx(std::sqrt(named * scale_of(placed({.host_file = probe})))));
    CHECK(stddev_of(placed({.cpu = "8480+", .host_file = probe})) == approx(0.24));
    CHECK(stddev_of(placed({.cpu = "8480+", .host_load = "dedicated", .host_file = probe})) == approx(0.19));
    CHECK(scale_of(placed({.host_file = file("Intel(R) Xeon(R) Platinum 8480+", "0.8", "0.8")})) == approx(both));

    const FrameworkProfile alone = placed({.host_file = file(anonymous, "0.4", "0.9")}, {});
    REQUIRE(alone.groups.size() == 1);  // what anchor rows start from
    CHECK(alone.groups[0].scale == approx(fast_scale));
    CHECK(alone.groups[0].log_stddev == approx(0.24));
}

TEST_CASE("a host file without its probe is refused with its name and field") {
    const test::TemporaryFolder folder;
    const auto failure = [&](const std::string& text) {
        const std::string file = folder.write("host.json", text);
        return test::failure_of([&] { return placed({.host_file = file}); });
    };
    for (const auto& [text, field] : {std::pair<std::string, std::string>{"{", ":1:2"},
                                      {R"({"schema_version": 1})", "environment"},
                                      {R"({"schema_version": 1, "environment": {"cpu": "x"}})", "probe_cpu_median_us"},
                                      {host_text("x", "fast", "1"), "environment.probe_cpu_median_us"},
                                      {host_text("x", "nan", "1"), "environment.probe_cpu_median_us"},
                                      {host_text("x", "-1", "1"), "environment.probe_cpu_median_us"},
                                      {host_text("x", "4e-7", "4e-7"), "environment.probe_cpu_median_us"},
                                      {host_text("x", "1", "0.5"), "environment.probe_wall_median_us"},
                                      {host_text("", "1", "1"), "environment.cpu"}}) {
        const test::Failure said = failure(text);
        CAPTURE(said.message);
        CHECK(said.code == ErrorCode::profile);
        CHECK(said.says("host.json"));
        CHECK(said.says(field));
    }
    CHECK_THROWS_AS(placed({.host_file = "/nonexistent/host.json"}), Error);
}
