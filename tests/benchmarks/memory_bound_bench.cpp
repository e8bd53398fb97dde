#include <benchmark/benchmark.h>

#include <array>
#include <string_view>

#include "predictors/kernels/attention.hpp"
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
    AttentionShape shape{8, 16, 2048, 2048, 64, 2, false, AttentionPath::flash};
    for (auto _ : state) {
        benchmark::DoNotOptimize(shape);
        benchmark::DoNotOptimize(plan(shape, device, p).seconds);
    }
}
BENCHMARK(attention_kernel);

}  // namespace
