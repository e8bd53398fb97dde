#include <benchmark/benchmark.h>

#include <array>
#include <string_view>

#include "predictors/kernels/attention.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/kernels/memory_bound.hpp"

namespace {

using namespace ftax;
using namespace ftax::kernels;

DeviceRates<double> rates() {
    return {Architecture::turing, MathPath::fp32, 40, 4e6, 65536, 1024, 1.59e9, 70, 8.1e12, 8.1e12, 2.4e11, 2e-6};
}

template <class Parameters>
Parameters initial() {
    Parameters p;
    visit_parameters(p, [](std::string_view, double& value, const ParameterSpec& spec) { value = spec.initial; });
    return p;
}

void memory_kernel(benchmark::State& state) {
    const auto p = initial<MemoryParameters<double>>();
    const auto device = rates();
    MemoryShape shape{static_cast<MemoryClass>(state.range(0)), 4096 * 1280, 4096, 1280, 4096 * 5120, 4096 * 5120, 4};
    for (auto _ : state) {
        benchmark::DoNotOptimize(shape);
        benchmark::DoNotOptimize(seconds_of(shape, device, p));
    }
}
BENCHMARK(memory_kernel)
    ->Arg(static_cast<int>(MemoryClass::pointwise))
    ->Arg(static_cast<int>(MemoryClass::transcendental))
    ->Arg(static_cast<int>(MemoryClass::softmax))
    ->Arg(static_cast<int>(MemoryClass::layer_norm));

void attention_kernel(benchmark::State& state) {
    const auto p = initial<AttentionParameters<double>>();
    const auto device = rates();
    AttentionShape shape{8, 16, 2048, 2048, 64, 2, false, AttentionPath::memory_efficient};
    for (auto _ : state) {
        benchmark::DoNotOptimize(shape);
        benchmark::DoNotOptimize(plan(shape, device, p, {}).seconds);
    }
}
BENCHMARK(attention_kernel);

/// Prefill and decode, whose keys may be split into up to 128 parts, of fused kernels; a row-wise kernel.
void layer_kernel(benchmark::State& state, const char* gpu, KernelShape shape) {
    DeviceProfile profile;
    profile.device = device_spec(gpu);
    const KernelModels<double> models(profile.device, kernel_parameters(profile));
    for (auto _ : state) {
        benchmark::DoNotOptimize(shape);
        benchmark::DoNotOptimize(
            std::visit([&](const auto& s) { return models.plan(s, MathPath::bf16_tensor).seconds; }, shape));
    }
}
const AttentionShape prefill{8, 32, 2048, 2048, 128, 2, true, AttentionPath::flash, 8, true};
const AttentionShape decode{1, 32, 1, 32768, 128, 2, false, AttentionPath::flash, 8, true};
const MemoryShape norm{.cls = MemoryClass::layer_norm,
                       .elements = 4096 * 1024,
                       .rows = 1024,
                       .row_length = 4096,
                       .read_bytes = 4096 * 2048,
                       .write_bytes = 4096 * 2048,
                       .element_bytes = 2,
                       .token = TokenKernel::norm};
BENCHMARK_CAPTURE(layer_kernel, prefill, "h100-sxm5-80gb", prefill);
BENCHMARK_CAPTURE(layer_kernel, decode, "b200", decode);
BENCHMARK_CAPTURE(layer_kernel, norm, "a100-sxm4-80gb", norm);

}  // namespace
