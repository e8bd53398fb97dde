#include "predictors/kernels/residency.hpp"

#include <doctest/doctest.h>

using namespace ftax;

namespace {

kernels::DeviceRates<double> ten_sms() {
    kernels::DeviceRates<double> rates;
    rates.sms = 10;
    rates.max_threads_per_sm = 1024;
    return rates;
}

}  // namespace

TEST_CASE("fewer blocks than SMs leave SMs empty, the rest of a wave too") {
    CHECK(residency(3, 128, 4, ten_sms()).sms == doctest::Approx(0.3));
    CHECK(residency(10, 128, 4, ten_sms()).sms == doctest::Approx(1));
    CHECK(residency(40, 128, 4, ten_sms()).sms == doctest::Approx(1));
    CHECK(residency(45, 128, 4, ten_sms()).sms == doctest::Approx((1 + 0.5) / 2));
    CHECK(residency(0, 128, 4, ten_sms()).sms == 0);
}

TEST_CASE("warps count against what the SMs can hold") {
    CHECK(residency(10, 128, 4, ten_sms()).warps == doctest::Approx(128.0 / 1024));
    CHECK(residency(80, 128, 8, ten_sms()).warps == doctest::Approx(1));
    CHECK(residency(40, 128, 2, ten_sms()).warps == doctest::Approx(2 * 128.0 / 1024));
}

TEST_CASE("a large pointwise kernel fills the GPU, a row of a softmax does not") {
    kernels::MemoryShape large{.elements = 1 << 24};
    CHECK(residency(large, ten_sms()).sms > 0.99);
    kernels::MemoryShape row{.cls = kernels::MemoryClass::softmax, .elements = 1000, .rows = 1, .row_length = 1000};
    CHECK(residency(row, ten_sms()).sms == doctest::Approx(0.1));
}
