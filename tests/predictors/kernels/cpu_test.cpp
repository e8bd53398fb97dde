#include "predictors/kernels/cpu.hpp"

#include <doctest/doctest.h>

#include "predictors/kernels/device_model.hpp"
#include "tests/approx.hpp"
#include "tests/calibration/fit/reference_cpu.hpp"

using namespace ftax;
using namespace ftax::kernels;

TEST_CASE("a byte costs more the less of the data a cache holds") {
    const auto cpu = test::reference_cpu();
    CHECK(cpu.seconds_per_byte(1 << 10) == approx(1 / cpu.parameters.l2_bytes_per_s).epsilon(0.01));
    CHECK(cpu.seconds_per_byte(1e12) == approx(1 / cpu.parameters.memory_bytes_per_s).epsilon(0.01));
    double last = 0;
    for (double bytes = 1e3; bytes < 1e11; bytes *= 1.5) {
        CHECK(cpu.seconds_per_byte(bytes) >= last);
        last = cpu.seconds_per_byte(bytes);
    }
}

TEST_CASE("a large matrix product on a CPU runs at its rate") {
    const auto cpu = test::reference_cpu();
    const double seconds = cpu.seconds(GemmShape{.m = 4096, .n = 4096, .k = 4096, .linear = true});
    const double arithmetic_s = 2 * 4096.0 * 4096 * 4096 / cpu.parameters.gemm_flops_per_s;
    CHECK(seconds > arithmetic_s);
    CHECK(seconds < 1.2 * arithmetic_s);
}

TEST_CASE("an output of 32 MiB is mapped again on every call and faulted in") {
    const auto cpu = test::reference_cpu();
    const auto pointwise = [](std::int64_t elements) {
        return MemoryShape{.elements = elements, .read_bytes = 4 * elements, .write_bytes = 4 * elements};
    };
    const double below = cpu.seconds(pointwise((8 << 20) - 1024));
    const double above = cpu.seconds(pointwise(8 << 20));
    CHECK(above - below == approx((32 << 20) / cpu.parameters.fault_bytes_per_s).epsilon(0.05));
}

TEST_CASE("channels beside a full block cost as much as a full block") {
    const auto cpu = test::reference_cpu();
    const auto arithmetic = [&](std::int64_t channels) {
        ConvShape shape{.in_channels = 512, .out_channels = channels, .kernel_h = 3, .kernel_w = 3};
        shape.batch = 64, shape.in_height = shape.in_width = shape.out_height = shape.out_width = 56;
        return cpu.seconds(shape);
    };
    CHECK(arithmetic(17) > 1.5 * arithmetic(16));
    CHECK(arithmetic(32) < 1.1 * arithmetic(17));
}

TEST_CASE("a depthwise convolution runs at a rate of its own") {
    auto cpu = test::reference_cpu();
    const ConvShape shape{.batch = 1,
                          .in_channels = 512,
                          .out_channels = 512,
                          .groups = 512,
                          .in_height = 14,
                          .in_width = 14,
                          .out_height = 14,
                          .out_width = 14,
                          .kernel_h = 3,
                          .kernel_w = 3};
    const double before = cpu.seconds(shape);
    cpu.parameters.depthwise_flops_per_s /= 2;
    CHECK(cpu.seconds(shape) - before == approx(2.0 * 512 * 14 * 14 * 9 / (2 * cpu.parameters.depthwise_flops_per_s)));
}

TEST_CASE("a CPU's attention is arithmetic, its softmax traffic, a convolution both") {
    const DeviceModel cpu{test::reference_cpu()};
    const auto attention = plan(cpu, AttentionShape{2, 8, 512, 512, 64, 4}, MathPath::fp32);
    CHECK(attention.seconds > 0);
    CHECK(attention.compute_s == attention.seconds);
    const auto softmax =
        plan(cpu, MemoryShape{.elements = 1 << 22, .read_bytes = 1 << 24, .write_bytes = 1 << 24}, MathPath::fp32);
    CHECK(softmax.compute_s == 0);
    CHECK(softmax.memory_s == softmax.seconds);
    ConvShape shape{.in_channels = 64, .out_channels = 64, .kernel_h = 3, .kernel_w = 3};
    shape.batch = 8, shape.in_height = shape.in_width = shape.out_height = shape.out_width = 56;
    const auto conv = plan(cpu, shape, MathPath::fp32);
    CHECK(conv.compute_s > 0);
    CHECK(conv.memory_s > 0);
    CHECK(conv.compute_s + conv.memory_s == approx(conv.seconds));
    // Of a class's arithmetic only the rate of its own class counts.
    for (const std::int64_t groups : {1, 4, 64}) {
        ConvShape grouped = shape;
        grouped.groups = groups;
        auto faster = test::reference_cpu();
        (groups == 64 ? faster.parameters.depthwise_flops_per_s : faster.parameters.conv_flops_per_s) *= 2;
        CHECK(plan(DeviceModel{faster}, grouped, MathPath::fp32).compute_s ==
              approx(plan(cpu, grouped, MathPath::fp32).compute_s / 2));
    }
}

TEST_CASE("a CPU skips masked scores, takes weights from memory and runs grouped convolutions as dense ones") {
    auto cpu = test::reference_cpu();
    AttentionShape attention{
        .batch = 1, .heads = 8, .q_length = 2048, .kv_length = 2048, .head_dim = 64, .element_bytes = 4};
    const double whole_s = cpu.seconds(attention);
    attention.causal = true;
    CHECK(cpu.seconds(attention) < 0.6 * whole_s);
    GemmShape product{.m = 1, .n = 1024, .k = 1024};
    const double activations_s = cpu.seconds(product);
    product.linear = true;
    const double bytes = 4.0 * 1024 * 1024, moved = 4.0 * 2048;
    CHECK(cpu.seconds(product) - activations_s ==
          approx(bytes / cpu.parameters.weight_bytes_per_s - bytes * cpu.seconds_per_byte(bytes + moved)));
    ConvShape grouped{.in_channels = 64, .out_channels = 64, .groups = 4, .kernel_h = 3, .kernel_w = 3};
    grouped.in_height = grouped.in_width = grouped.out_height = grouped.out_width = 28;
    const double before_s = cpu.seconds(grouped);
    cpu.parameters.depthwise_flops_per_s *= 10;
    CHECK(cpu.seconds(grouped) == before_s);
    grouped.groups = 64;
    const double depthwise_s = cpu.seconds(grouped);
    cpu.parameters.depthwise_flops_per_s *= 10;
    CHECK(cpu.seconds(grouped) < depthwise_s);
}
