#include <benchmark/benchmark.h>

#include "predictors/kernels/gemm.hpp"

namespace {

using namespace ftax;
using namespace ftax::kernels;

/// Cost of one evaluation of the matrix-product model, choice of kernel included. Bar: 150 ns.
void gemm_seconds_of(benchmark::State& state, GemmShape shape, Architecture architecture, MathPath path) {
    GemmParameters p;
    visit_parameters(p, [](std::string_view, double& value, const ParameterSpec& spec) { value = spec.initial; });
    DeviceRates rates;
    rates.architecture = architecture;
    rates.path = path;
    rates.sms = 72;
    rates.l2_bytes = 6e6;
    rates.boost_clock_hz = 1.7e9;
    rates.arithmetic_power_w = 210;
    rates.energy_per_flop_j = 12e-12;
    rates.flops_per_s = path == MathPath::fp32 ? 16e12 : 130e12;
    rates.fp32_flops_per_s = 16e12;
    rates.bandwidth_bytes_per_s = 672e9;
    rates.floor_s = 2e-6;
    for (auto _ : state) {
        benchmark::DoNotOptimize(shape);
        benchmark::DoNotOptimize(plan(shape, rates, p).seconds);
    }
}

constexpr GemmShape linear{.m = 4096, .n = 3072, .k = 768, .linear = true};
constexpr GemmShape narrow{.m = 32, .n = 1000, .k = 2048, .linear = true};
constexpr GemmShape attention{.batch = 384, .m = 128, .n = 128, .k = 64};

BENCHMARK_CAPTURE(gemm_seconds_of, linear_turing, linear, Architecture::turing, MathPath::fp32);
BENCHMARK_CAPTURE(gemm_seconds_of, linear_ampere, linear, Architecture::ampere, MathPath::fp32);
BENCHMARK_CAPTURE(gemm_seconds_of, narrow_turing, narrow, Architecture::turing, MathPath::fp32);
BENCHMARK_CAPTURE(gemm_seconds_of, attention_turing, attention, Architecture::turing, MathPath::fp32);
BENCHMARK_CAPTURE(gemm_seconds_of, attention_ampere, attention, Architecture::ampere, MathPath::fp32);
BENCHMARK_CAPTURE(gemm_seconds_of, linear_tensor, linear, Architecture::turing, MathPath::fp16_tensor);

}  // namespace
