#include "predictors/kernels/sustained.hpp"

#include <doctest/doctest.h>

#include "tests/approx.hpp"
#include "tests/start_values.hpp"

namespace {

using namespace ftax;
using namespace ftax::kernels;

SustainedParameters initial(const DeviceSpec& device) {
    return test::start_values<SustainedParameters>(device);
}

}  // namespace

TEST_CASE("rates are datasheet times sustained shares") {
    const DeviceSpec& t4 = device_spec("t4");
    SustainedParameters p = initial(t4);
    p.clock_fp32 = 0.5;
    p.clock_tensor = 0.25;
    p.bandwidth = 0.75;
    const auto fp32 = device_rates(t4, MathPath::fp32, p);
    CHECK(fp32.flops_per_s == approx(0.5 * *t4.peak(MathPath::fp32)));
    CHECK(fp32.bandwidth_bytes_per_s == approx(0.75 * t4.memory_bandwidth_bytes_per_s));
    const auto half = device_rates(t4, MathPath::fp16_tensor, p);
    CHECK(half.flops_per_s == approx(0.25 * *t4.peak(MathPath::fp16_tensor)));
    CHECK(half.fp32_flops_per_s == fp32.flops_per_s);
}

TEST_CASE("int8 of half a GA100's operations per SM and clock sustains a larger share of them") {
    for (const char* full : {"a30", "a100-sxm4-80gb", "jetson-agx-orin-64gb", "t4", "rtx-4090"})
        CHECK(narrow_share(device_spec(full), MathPath::int8_tensor) == 1);
    for (const char* half : {"a10", "a2", "l4", "rtx-2000-ada"}) {
        CHECK(narrow_share(device_spec(half), MathPath::int8_tensor) > 1);
        CHECK(narrow_share(device_spec(half), MathPath::fp16_tensor) == 1);
    }
}

TEST_CASE("the bonus of a clock beyond the stated boost is none of the full rate of 16-bit sums") {
    const DeviceSpec& card = device_spec("rtx-2080-ti");
    SustainedParameters p = initial(card);
    const MathPath whole = MathPath::fp16_tensor_fp16_accumulate;
    const auto share = [&](MathPath path) { return device_rates(card, path, p).flops_per_s / *card.peak(path); };
    for (const double clock : {0.8, 1.0, 1.2}) {
        p.clock_tensor = clock;
        CHECK(share(MathPath::fp16_tensor) == approx(clock));
        CHECK(share(whole) == approx(std::min(clock, 1.0)));
    }
}

TEST_CASE("a path the device lacks runs at the rate of its CUDA cores") {
    const DeviceSpec& p4 = device_spec("p4");
    const auto p = initial(p4);
    CHECK(device_rates(p4, MathPath::fp16_tensor, p).flops_per_s == device_rates(p4, MathPath::fp32, p).flops_per_s);
}

TEST_CASE("GDDR with ECC is expected to sustain less than HBM, without it more") {
    CHECK(expected_bandwidth_share(device_spec("l4")) < expected_bandwidth_share(device_spec("a100-pcie-40gb")));
    CHECK(expected_bandwidth_share(device_spec("rtx-3090")) > expected_bandwidth_share(device_spec("a100-pcie-40gb")));
    CHECK(expected_bandwidth_share(device_spec("titan-v")) == expected_bandwidth_share(device_spec("h100-sxm5-80gb")));
}

TEST_CASE("a card with doubled lanes is expected to use some of them, a GeForce card to exceed its stated boost") {
    CHECK(expected_clock_share(device_spec("a10")) < expected_clock_share(device_spec("rtx-3090")));
    CHECK(expected_clock_share(device_spec("rtx-3090")) < expected_clock_share(device_spec("h100-sxm5-80gb")));
    CHECK(expected_clock_share(device_spec("h100-sxm5-80gb")) < expected_clock_share(device_spec("a30")));
    CHECK(expected_tensor_share(device_spec("rtx-4070")) > expected_tensor_share(device_spec("l40")));
    CHECK(expected_tensor_share(device_spec("titan-v")) == expected_tensor_share(device_spec("v100-pcie-16gb")));
}
