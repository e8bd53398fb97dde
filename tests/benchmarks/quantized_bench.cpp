#include <benchmark/benchmark.h>

#include "predictors/kernels/kernel_models.hpp"

namespace {

using namespace ftax;
using namespace ftax::kernels;

/// Cost of one plan on tensor cores, choice of kernel included. Bar: 150 ns, 400 ns where splits make 40 candidates.
template <class Shape>
void tensor_plan(benchmark::State& state, Shape shape, MathPath path) {
    const DeviceProfile profile = device_profile("b200");
    const KernelModels models(profile.device, kernel_parameters(profile));
    for (auto _ : state) {
        benchmark::DoNotOptimize(shape);
        benchmark::DoNotOptimize(models.plan(shape, path).seconds);
    }
}

constexpr GemmShape layer(std::int64_t m, Precision operands) {
    return {.m = m, .n = 4096, .k = 4096, .element_bytes = 2, .linear = true, .operands = operands};
}

BENCHMARK_CAPTURE(tensor_plan, bf16_large, layer(4096, Precision::fp32), MathPath::bf16_tensor);
BENCHMARK_CAPTURE(tensor_plan, bf16_narrow, layer(16, Precision::fp32), MathPath::bf16_tensor);
BENCHMARK_CAPTURE(tensor_plan, fp8_large, layer(4096, Precision::fp8), MathPath::fp8_tensor);
BENCHMARK_CAPTURE(tensor_plan, fp8_narrow, layer(16, Precision::fp8), MathPath::fp8_tensor);
BENCHMARK_CAPTURE(tensor_plan, nvfp4_large, layer(4096, Precision::nvfp4), MathPath::fp4_tensor);
BENCHMARK_CAPTURE(tensor_plan, quantize, QuantizeShape{4096, 4096, Precision::fp8}, MathPath::fp8_tensor);
BENCHMARK_CAPTURE(tensor_plan, grouped,
                  GroupedGemmShape{.experts = 128, .per_token = 8, .rows = 4096, .n = 4096, .k = 1536},
                  MathPath::bf16_tensor);

}  // namespace
