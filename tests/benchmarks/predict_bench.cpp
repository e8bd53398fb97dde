#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "ftax/import.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"

namespace {

using namespace ftax;

const std::string exported = FTAX_EXPORTED_FILES "/";

Predictor eager_predictor(const Graph& graph) {
    return {graph, device_profile("quadro-rtx-8000"), framework_profile("pytorch-eager")};
}

ShapeBindings bindings_of(const Graph& graph, std::int64_t batch) {
    ShapeBindings bindings{{"batch", batch}};
    for (const std::string& symbol : graph.expressions.symbols()) bindings.emplace(symbol, 128);
    return bindings;
}

/// Bars: ResNet-50 of the zoo 20 ms, as .pt2 30 ms. A whole process: load a weightless model, predict 8 batches, find
/// the crossover, print. `cpu_ms` is what the process itself computes, for machines that have other work.
void cold_process(benchmark::State& state, const std::string& model) {
    const char* arguments[] = {FTAX_PROGRAM,      "predict", model.c_str(), "--device",
                               "quadro-rtx-8000", "--batch", "1:128:x2",    nullptr};
    posix_spawn_file_actions_t silent;
    posix_spawn_file_actions_init(&silent);
    for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
        posix_spawn_file_actions_addopen(&silent, descriptor, "/dev/null", O_WRONLY, 0);
    }
    double cpu_ms = 0;
    for (auto _ : state) {
        pid_t child = 0;
        int status = 1;
        rusage usage{};
        if (posix_spawn(&child, arguments[0], &silent, nullptr, const_cast<char**>(arguments), environ) == 0) {
            wait4(child, &status, 0, &usage);
        }
        for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
            cpu_ms += 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
        }
        if (status != 0) state.SkipWithError("the program failed");
    }
    state.counters["cpu_ms"] = benchmark::Counter(cpu_ms, benchmark::Counter::kAvgIterations);
    posix_spawn_file_actions_destroy(&silent);
}
BENCHMARK_CAPTURE(cold_process, resnet50, "resnet50")->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(cold_process, resnet50_pt2, exported + "resnet50.pt2")->Unit(benchmark::kMillisecond)->UseRealTime();

/// Bar for resnet50: 0.02 ms. A loaded model, one batch after another.
void warm_predict(benchmark::State& state, const std::string& model) {
    const Graph graph = load_graph(model);
    Predictor predictor = eager_predictor(graph);
    ShapeBindings bindings = bindings_of(graph, 1);
    std::int64_t& batch = bindings["batch"];
    for (auto _ : state) {
        batch = batch % 128 + 1;
        benchmark::DoNotOptimize(predictor.predict(bindings).latency_s);
    }
}
BENCHMARK_CAPTURE(warm_predict, resnet50, "resnet50")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(warm_predict, bert, "bert")->Unit(benchmark::kMicrosecond);

void load(benchmark::State& state, const std::string& model) {
    for (auto _ : state) benchmark::DoNotOptimize(load_graph(model).ops.size());
}
BENCHMARK_CAPTURE(load, resnet50, "resnet50")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(load, efficientnet, "efficientnet")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(load, resnet50_pt2, exported + "resnet50.pt2")->Unit(benchmark::kMicrosecond);

/// What a process pays once per model: lowering to what the framework launches.
void lower(benchmark::State& state, const std::string& model) {
    const Graph graph = load_graph(model);
    for (auto _ : state) {
        Predictor predictor = eager_predictor(graph);
        benchmark::DoNotOptimize(&predictor);
    }
}
BENCHMARK_CAPTURE(lower, resnet50, "resnet50")->Unit(benchmark::kMicrosecond);

}  // namespace
