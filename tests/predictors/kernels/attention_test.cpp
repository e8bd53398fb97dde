#include "predictors/kernels/attention.hpp"

#include <doctest/doctest.h>

#include "tests/approx.hpp"
#include "tests/start_values.hpp"

namespace {

using namespace ftax;
using namespace ftax::kernels;

/// 100 SMs, 100 TFLOP/s on tensor cores, 1 TB/s, 2 µs floor.
DeviceRates round_device() {
    DeviceRates device;
    device.chip = &architecture_spec(Architecture::ampere, 8, 0);
    device.path = MathPath::fp16_tensor;
    device.sms = 100;
    device.flops_per_s = 1e14;
    device.boost_clock_hz = 1e9;
    device.bandwidth_bytes_per_s = 1e12;
    device.floor_s = 2e-6;
    return device;
}

AttentionParameters initial_parameters() {
    return test::start_values<AttentionParameters>();
}

AttentionShape long_sequence() {
    return {16, 16, 4096, 4096, 128, 2, false, AttentionPath::memory_efficient};
}

}  // namespace

TEST_CASE("memory-efficient attention of long sequences runs at its share of the tensor-core rate") {
    auto p = initial_parameters();
    p.memory_efficient_efficiency = 0.5;
    p.score_cycles = 0;
    const double flops = 4.0 * 256 * 4096 * 4096 * 128;
    CHECK(plan(long_sequence(), round_device(), p, {}).seconds == approx(flops / 0.5e14).epsilon(0.01));
}

TEST_CASE("memory-efficient attention in f32 takes three products in TF32") {
    auto p = initial_parameters();
    p.score_cycles = 0;
    AttentionShape shape = long_sequence();
    shape.element_bytes = 4;
    DeviceRates device = round_device();
    device.path = MathPath::tf32;
    const double flops = 4.0 * 256 * 4096 * 4096 * 128;
    CHECK(plan(shape, device, p, {}).seconds == approx(3 * flops / 0.3e14).epsilon(0.01));
}

TEST_CASE("a causal mask saves nearly half of a long sequence") {
    const auto p = initial_parameters();
    AttentionShape causal = long_sequence();
    causal.causal = true;
    const double ratio =
        plan(causal, round_device(), p, {}).seconds / plan(long_sequence(), round_device(), p, {}).seconds;
    CHECK(ratio > 0.5);
    CHECK(ratio < 0.56);
}

TEST_CASE("the memory-efficient kernel is faster than attention with its scores in memory") {
    auto shape = AttentionShape{8, 16, 2048, 2048, 64, 2, false, AttentionPath::memory_efficient};
    const auto p = initial_parameters();
    const double memory_efficient = plan(shape, round_device(), p, {}).seconds;
    shape.path = AttentionPath::math;
    const double math = plan(shape, round_device(), p, {}).seconds;
    CHECK(memory_efficient < math);
}

TEST_CASE("one query against a long cache is bound by reading the cache") {
    const AttentionShape shape{64, 32, 1, 8192, 128, 2, false, AttentionPath::memory_efficient};
    const double cache_bytes = 64.0 * 32 * 2 * 8192 * 128 * 2;
    CHECK(plan(shape, round_device(), initial_parameters(), {}).seconds >= cache_bytes / 1e12);
}

TEST_CASE("attention without keys takes the floor") {
    AttentionShape shape = long_sequence();
    shape.kv_length = 0;
    CHECK(plan(shape, round_device(), initial_parameters(), {}).seconds == round_device().floor_s);
}
