#include <benchmark/benchmark.h>

#include "predictors/kernels/conv.hpp"

namespace {

using namespace ftax;
using namespace ftax::kernels;

/// Cost of one evaluation of the convolution model, choice of algorithm included. Bar: 150 ns.
void conv_seconds_of(benchmark::State& state, ConvShape shape, MathPath path) {
    ConvParameters p;
    visit_parameters(p, [](std::string_view, double& value, const ParameterSpec& spec) { value = spec.initial; });
    DeviceRates rates;
    rates.path = path;
    rates.sms = 72;
    rates.flops_per_s = rates.fp32_flops_per_s = 16e12;
    rates.bandwidth_bytes_per_s = 672e9;
    rates.floor_s = 2e-6;
    for (auto _ : state) {
        benchmark::DoNotOptimize(shape);
        benchmark::DoNotOptimize(plan(shape, rates, p).seconds);
    }
}

ConvShape conv(std::int64_t kernel, std::int64_t groups) {
    return {.batch = 32,
            .in_channels = 128,
            .out_channels = 128,
            .groups = groups,
            .in_height = 28,
            .in_width = 28,
            .out_height = 28,
            .out_width = 28,
            .kernel_h = kernel,
            .kernel_w = kernel};
}

BENCHMARK_CAPTURE(conv_seconds_of, pointwise, conv(1, 1), MathPath::fp32);
BENCHMARK_CAPTURE(conv_seconds_of, winograd, conv(3, 1), MathPath::fp32);
BENCHMARK_CAPTURE(conv_seconds_of, tensor, conv(3, 1), MathPath::fp16_tensor);
BENCHMARK_CAPTURE(conv_seconds_of, depthwise, conv(3, 128), MathPath::fp32);

}  // namespace
