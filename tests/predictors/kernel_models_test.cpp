#include "predictors/kernel_models.hpp"

#include <doctest/doctest.h>

#include "ftax/error.hpp"

using namespace ftax;

namespace {

DeviceProfile unfitted(std::string_view device) { return {.device = device_spec(device)}; }

}  // namespace

TEST_CASE("a parameter of the profile replaces the initial value") {
    DeviceProfile profile = unfitted("t4");
    const kernels::MemoryShape copy{kernels::MemoryClass::copy, 1 << 28, 1, 1, 1 << 30, 1 << 30, 4};
    const double before_s = KernelModels(profile).cost(copy).seconds;
    profile.parameters = {{.name = "bandwidth", .value = 0.38}};  // half of what is expected
    CHECK(KernelModels(profile).cost(copy).seconds == doctest::Approx(2 * before_s).epsilon(0.01));
}

TEST_CASE("a parameter outside the bounds of its model is refused") {
    DeviceProfile profile = unfitted("t4");
    profile.parameters = {{.name = "bandwidth", .value = 7}};
    CHECK_THROWS_AS(KernelModels{profile}, Error);
}

TEST_CASE("tiny kernels are bound by the floor, large copies by memory") {
    const KernelModels models(unfitted("t4"));
    CHECK(models.cost(kernels::MemoryShape{kernels::MemoryClass::copy, 64, 1, 64, 256, 256, 4}).bound == Bound::latency_floor);
    CHECK(models.cost(kernels::MemoryShape{kernels::MemoryClass::copy, 1 << 28, 1, 1, 1 << 30, 1 << 30, 4}).bound ==
          Bound::memory);
}
