#include "calibration/fit/operator_profile.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace ftax;

TEST_CASE("of two fits of a parameter the earlier one counts") {
    using enum ParameterScope;
    fit::FitReport first;
    first.parameters = {{{"bandwidth", 0.75, 0.01, "first"}, device, "t4"},
                        {{"memory.sfu_cost_ratio", 1.5, 0.1, "first"}, architecture, "pascal"},
                        {{"memory.power_flops", 90, 0.1, "first"}, shared, ""}};
    first.nuisance = {{{"operator.host_scale", 1.1, 0, "first"}, device, "t4"},
                      {{"host_start_s", 1e-5, 0, "first"}, device, "t4"}};
    fit::FitReport second;
    second.parameters = {{{"bandwidth", 0.6, 0.01, "second"}, device, "t4"},
                         {{"bandwidth", 0.7, 0.01, "second"}, device, "p4"}};
    const DeviceProfileFile file = fit::operator_profile(std::vector{first, second}, "1");

    CHECK(file.fitted_on == std::vector<std::string>{"p4", "t4"});
    const DeviceProfile t4 = compose(file, device_spec("t4"));
    REQUIRE(t4.parameters.size() == 3);  // bandwidth, power_flops, host_scale; sfu_cost_ratio is Pascal's
    CHECK(t4.parameters[0].name == "bandwidth");
    CHECK(t4.parameters[0].value == 0.75);
    CHECK(t4.warnings.empty());
    CHECK(compose(file, device_spec("p4")).parameters.size() == 3);
    CHECK(to_text(file) == to_text(parse_device_profile(to_text(file), "test")));
}
