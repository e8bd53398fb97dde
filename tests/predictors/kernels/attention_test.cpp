#include "predictors/kernels/attention.hpp"

#include <doctest/doctest.h>

#include <utility>

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

TEST_CASE("memory-efficient attention in half precision is slower before Ampere, whose copies are asynchronous") {
    auto p = initial_parameters();
    p.memory_efficient_efficiency = 0.8;
    p.score_cycles = 0;
    const double flops = 4.0 * 256 * 4096 * 4096 * 128;
    DeviceRates device = round_device();
    for (const auto& [architecture, minor] : {std::pair{Architecture::volta, 0}, {Architecture::turing, 5}}) {
        device.chip = &architecture_spec(architecture, 7, minor);
        device.path = MathPath::fp16_tensor;
        device.power_limit_w = 1e4;
        CHECK(plan(long_sequence(), device, p, {}).seconds == approx(flops / 0.37e14).epsilon(0.01));
        device.path = MathPath::fp32;
        CHECK(plan(long_sequence(), device, p, {}).seconds == approx(flops / 0.8e14).epsilon(0.01));
    }
}

TEST_CASE("memory-efficient attention in f32 takes three products in TF32, faster in xformers of 2022") {
    auto p = initial_parameters();
    p.score_cycles = 0;
    AttentionShape shape = long_sequence();
    shape.element_bytes = 4;
    DeviceRates device = round_device();
    device.path = MathPath::tf32;
    const double flops = 4.0 * 256 * 4096 * 4096 * 128;
    CHECK(plan(shape, device, p, {}).seconds == approx(3 * flops / 0.3e14).epsilon(0.01));
    shape.library = FlashLibrary::xformers;
    CHECK(plan(shape, device, p, {}).seconds == approx(3 * flops / 0.5e14).epsilon(0.01));
    device.chip = &architecture_spec(Architecture::hopper, 9, 0);
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

TEST_CASE("attention by two products reads and writes what its kernels do, and heads without a kernel are padded") {
    // arXiv 2205.14135, section 3: products write and read the scores, a softmax does both in between; PyTorch scales
    // queries and keys in passes of their own, llama.cpp has f32 scores beside products of f16: 24 bytes each in all.
    const auto p = initial_parameters();
    const DeviceRates device = round_device();
    AttentionShape shape{2, 4, 512, 512, 64, 2, false, AttentionPath::math};
    const double scores = 2 * 4 * 512.0 * 512, tensors_bytes = 4 * 2 * 4 * 512.0 * 64 * 2;
    const KernelPlan math = plan(shape, device, p, {});
    CHECK(math.floor_s == approx(3 * device.floor_s));
    CHECK(math.compute_s == approx(4 * scores * 64 / (device.flops_per_s * p.math_efficiency)));
    CHECK(math.memory_s == approx((3 * tensors_bytes + 4 * scores * 2) / device.bandwidth_bytes_per_s));
    CHECK(math.seconds == approx(math.floor_s + math.compute_s + math.memory_s));
    shape.path = AttentionPath::products;
    CHECK(plan(shape, device, p, {}).memory_s == approx((tensors_bytes + 24 * scores) / device.bandwidth_bytes_per_s));
    shape = long_sequence();
    const auto compute_s = [&](std::int64_t head) {
        shape.head_dim = head;
        return plan(shape, device, p, {}).compute_s;
    };
    for (const std::int64_t head : {65, 80, 95}) CHECK(compute_s(head) == approx(compute_s(96)));
    CHECK(compute_s(64) < compute_s(65));
}
