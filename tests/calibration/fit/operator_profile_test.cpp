#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "calibration/fit/operator_fit.hpp"

using namespace ftax;

TEST_CASE("of two fits of a parameter the earlier one counts") {
    using enum ParameterScope;
    fit::FitReport first;
    first.parameters = {{{"bandwidth", 0.75, 0.01, "first"}, device, "t4"},
                        {{"memory.sfu_cost_ratio", 1.5, 0.1, "first"}, architecture, "pascal"},
                        {{"memory.power_flops", 90, 0.1, "first"}, shared, ""}};
    first.nuisance = {{{"operator.host_scale", 1.1, 0, "first"}, device, "v100-pcie-32gb"},
                      {{"operator.host_scale", 1.0, 0, "first"}, shared, ""}};
    fit::FitReport second;
    second.parameters = {{{"bandwidth", 0.6, 0.01, "second"}, device, "t4"},
                         {{"bandwidth", 0.7, 0.01, "second"}, device, "p4"}};
    second.nuisance = {{{"operator.host_scale", 1.2, 0, "second"}, device, "v100-pcie-32gb"}};
    const std::vector reports{first, second};
    const DeviceProfileFile file = fit::operator_profile(reports, "1");

    CHECK(file.fitted_on == std::vector<std::string>{"p4", "t4"});
    const DeviceProfile t4 = compose(file, device_spec("t4"));
    REQUIRE(t4.parameters.size() == 2);  // bandwidth, power_flops; sfu_cost_ratio is Pascal's
    CHECK(t4.parameters[0].name == "bandwidth");
    CHECK(t4.parameters[0].value == 0.75);
    CHECK(t4.warnings.empty());
    CHECK(compose(file, device_spec("p4")).parameters.size() == 3);
    CHECK(to_text(file) == to_text(parse_device_profile(to_text(file), "test")));

    const HostProfileFile hosts = fit::call_profile(reports, "pytorch-eager", "2.1");
    const FrameworkProfile own = compose(hosts, "v100-pcie-32gb"), other = compose(hosts, "t4");
    REQUIRE(own.parameters.size() == 1);
    CHECK(own.parameters[0].value == 1.1);
    CHECK(own.host == "v100-pcie-32gb machine");
    REQUIRE(other.parameters.size() == 1);
    CHECK(other.parameters[0].value == 1.0);
    CHECK(other.host == "reference");
}

TEST_CASE("kernels timed alone are noted by card and class") {
    DeviceProfileFile file{.version = "1"};
    fit::add_fitted_kernels(file, "l40s", Factor::attention);
    fit::add_fitted_kernels(file, "a40", Factor::gemm_tensor);
    fit::add_fitted_kernels(file, "l40s", Factor::gemm_tensor);
    REQUIRE(file.partly_fitted_on.size() == 2);
    CHECK(file.partly_fitted_on[0].slug == "a40");
    CHECK(std::ranges::count(file.partly_fitted_on[0].kernels, true) == 1);
    CHECK(std::ranges::count(file.partly_fitted_on[1].kernels, true) == 2);
}
