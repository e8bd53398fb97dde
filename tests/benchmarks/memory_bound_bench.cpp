#include <benchmark/benchmark.h>

#include <variant>

#include "predictors/kernels/kernel_models.hpp"

namespace {

using namespace ftax;
using namespace ftax::kernels;

KernelModels unfitted(const char* gpu) {
    DeviceProfile profile;
    profile.device = device_spec(gpu);
    return {profile.device, kernel_parameters(profile)};
}

void memory_kernel(benchmark::State& state) {
    const auto models = unfitted("t4");
    MemoryShape shape{static_cast<MemoryClass>(state.range(0)), 4096 * 1280, 4096, 1280, 4096 * 5120, 4096 * 5120, 4};
    for (auto _ : state) {
        benchmark::DoNotOptimize(shape);
        benchmark::DoNotOptimize(models.plan(shape, MathPath::fp32).seconds);
    }
}
BENCHMARK(memory_kernel)
    ->Arg(static_cast<int>(MemoryClass::pointwise))
    ->Arg(static_cast<int>(MemoryClass::transcendental))
    ->Arg(static_cast<int>(MemoryClass::softmax))
    ->Arg(static_cast<int>(MemoryClass::layer_norm));

/// Prefill and decode, whose keys may be split into up to 128 parts, of fused kernels; a row-wise kernel.
void layer_kernel(benchmark::State& state, const char* gpu, KernelShape shape) {
    const auto models = unfitted(gpu);
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
BENCHMARK_CAPTURE(layer_kernel, encoder, "l40s", AttentionShape{8, 16, 2048, 2048, 64, 2, false, AttentionPath::flash});
BENCHMARK_CAPTURE(layer_kernel, memory_efficient, "t4",
                  AttentionShape{8, 16, 2048, 2048, 64, 2, false, AttentionPath::memory_efficient});

}  // namespace
