#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "ftax/nas.hpp"

namespace {

using namespace ftax;

/// Architectures per second at three batches, once every block is known.
void nas_cost(benchmark::State& state, const char* name, std::size_t count, unsigned threads) {
    const nas::Space& space = nas::space(name);
    const nas::CostFunction cost(space, device_profile("rtx-2080-ti"), framework_profile("pytorch-eager"), {},
                                 {1, 32, 64});
    std::mt19937 random(1);
    std::vector<int> choices;
    const std::vector<int> options = space.options();
    for (std::size_t i = 0; i < count; ++i) {
        for (const int n : options) choices.push_back(std::uniform_int_distribution<>(0, n - 1)(random));
        // Resolutions of the once-for-all spaces as their search takes them: 128 to 224 in steps of 4.
        if (options.back() > 100) choices.back() = 96 + 4 * (choices.back() % 25);
    }
    std::vector<double> latency_s(count * 3);
    cost.cost(choices, latency_s, 1);
    for (auto _ : state) cost.cost(choices, latency_s, threads);
    state.SetItemsProcessed(static_cast<std::int64_t>(count) * state.iterations());
}
// One core, by processor time.
BENCHMARK_CAPTURE(nas_cost, nasbench201, "nasbench201", 2000, 1)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(nas_cost, fbnet, "fbnet", 2000, 1)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(nas_cost, ofa, "ofa", 2000, 1)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(nas_cost, ofa_resnet, "ofa-resnet", 2000, 1)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
// What tests/benchmarks/nas_python.py does from Python, and on two cores, by the clock on the wall.
BENCHMARK_CAPTURE(nas_cost, nasbench201_large, "nasbench201", 200'000, 1)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(nas_cost, nasbench201_one_core, "nasbench201", 200'000, 1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(nas_cost, nasbench201_two_cores, "nasbench201", 200'000, 2)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
