#include "predictors/kernels/kernel_models.hpp"

#include <doctest/doctest.h>

#include "ftax/error.hpp"

using namespace ftax;

namespace {

DeviceProfile unfitted(std::string_view device) {
    DeviceProfile profile;
    profile.device = device_spec(device);
    return profile;
}

kernels::KernelPlan<double> plan(const DeviceProfile& profile, const kernels::MemoryShape& shape) {
    return KernelModels<double>(profile.device, kernel_parameters(profile)).plan(shape, MathPath::fp32);
}

}  // namespace

TEST_CASE("a parameter of the profile replaces the initial value") {
    DeviceProfile profile = unfitted("t4");
    const kernels::MemoryShape copy{kernels::MemoryClass::copy, 1 << 28, 1, 1, 1 << 30, 1 << 30, 4};
    const double before_s = plan(profile, copy).seconds;
    profile.parameters = {{.name = "bandwidth", .value = 0.38}};  // half of what is expected
    CHECK(plan(profile, copy).seconds == doctest::Approx(2 * before_s).epsilon(0.01));
}

TEST_CASE("a parameter outside the bounds of its model is refused") {
    DeviceProfile profile = unfitted("t4");
    profile.parameters = {{.name = "bandwidth", .value = 7}};
    CHECK_THROWS_AS(static_cast<void>(kernel_parameters(profile)), Error);
    profile.parameters = {{.name = "bandwith", .value = 0.7}};
    CHECK_THROWS_AS(static_cast<void>(kernel_parameters(profile)), Error);
}

TEST_CASE("tiny kernels are bound by the floor, large copies by memory") {
    const DeviceProfile t4 = unfitted("t4");
    CHECK(plan(t4, kernels::MemoryShape{kernels::MemoryClass::copy, 64, 1, 64, 256, 256, 4}).bound() ==
          Bound::latency_floor);
    CHECK(plan(t4, kernels::MemoryShape{kernels::MemoryClass::copy, 1 << 28, 1, 1, 1 << 30, 1 << 30, 4}).bound() ==
          Bound::memory);
}

TEST_CASE("a generation holds fewer than 40 parameters of its own, its card's included") {
    KernelParameters<double> p;
    int own = 0;
    visit_parameters(p, device_spec("t4"), [&](std::string_view, double&, const ParameterSpec& spec) {
        own += spec.scope != ParameterScope::shared ? 1 : 0;
    });
    CHECK(own < 40);
}
