#include "calibration/fit/operator_fit.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "graphs/files/file.hpp"
#include "tests/cli/command.hpp"

using namespace ftax;

TEST_CASE("fit writes what operators say of a device and of its host, and validate takes both") {
    const test::TemporaryFolder folder;
    // A T4 at 240 GB/s in a machine whose calls take 60 µs.
    std::string rows = "gpu,op,precision,shape,latency_ms\n";
    for (int i = 0; i < 60; ++i) {
        const int row_count = 4 << (i / 3), width = 1024 + 128 * (i % 3);
        const double kernel_ms = 2e-3 + 8e-6 * row_count * width / 240;
        const double noise = 1 + 0.02 * (i * 7 % 5 - 2);
        rows += fmt::format("T4,relu,fp32,b={} h={},{}\n", row_count, width, noise * std::max(0.06, 0.03 + kernel_ms));
    }
    const std::string operators = folder.write("operators.csv", rows);
    const std::string device = folder.file("device.json"), host = folder.file("host.json");
    const auto run =
        test::run_ftax({"fit", operators, "-o", device, "--host-output", host, "--framework-version", "2.4"});
    REQUIRE_MESSAGE(run.exit_code == 0, run.errors);
    const HostProfileFile hosts = parse_host_profile(read_file(host), host);
    CHECK(hosts.framework == "pytorch-eager");
    CHECK(hosts.version == "2.4");
    for (const ScopedParameter& p : parse_device_profile(read_file(device), device).parameters) {
        CHECK_FALSE(p.parameter.name.starts_with("operator."));
    }
    CHECK(test::run_ftax({"validate", operators, "--profile", device, "--host-profile", host, "--max-mape", "10"})
              .exit_code == 0);
    CHECK(test::run_ftax({"validate", operators, "--profile", device, "--host-profile", device})
              .output.find("kind: is not") != std::string::npos);
}
