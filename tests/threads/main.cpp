#include <cstddef>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "ftax/import.hpp"
#include "ftax/nas.hpp"

// What programs may do from several threads at once, as one program of its own: it builds in minutes under
// ThreadSanitizer (`make tsan`), and also runs without it, where it checks the results only.

namespace {

constexpr std::size_t architectures = 200;

/// One cost function for all threads: blocks are timed once, whoever needs them first.
bool share_cost_function() {
    const ftax::nas::Space& space = ftax::nas::space("fbnet");
    const ftax::nas::CostFunction cost(space, ftax::device_profile("t4"), ftax::framework_profile("pytorch-eager"), {},
                                       {1, 64});
    std::mt19937 random(1);
    std::vector<int> choices;
    for (std::size_t i = 0; i < architectures; ++i) {
        for (const int options : space.options())
            choices.push_back(static_cast<int>(random() % static_cast<unsigned>(options)));
    }
    std::vector<std::vector<double>> results(4, std::vector<double>(2 * architectures));
    std::vector<std::thread> threads;
    for (std::vector<double>& result : results) {
        threads.emplace_back([&] { cost.cost(choices, result, 2); });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<double> alone(2 * architectures);
    cost.cost(choices, alone, 1);
    for (const std::vector<double>& result : results) {
        if (result != alone) return false;
    }
    return true;
}

/// Predictors of their own, over tables that the program reads once.
bool predict_side_by_side() {
    std::vector<double> latencies(4);
    std::vector<std::thread> threads;
    for (double& latency : latencies) {
        threads.emplace_back([&latency] {
            const ftax::Graph graph = ftax::load_graph("resnet18");
            ftax::Predictor predictor(graph, ftax::device_profile("l4"), ftax::framework_profile("onnxruntime-cuda"));
            latency = predictor.predict({{"batch", 4}}).latency_s;
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (const double latency : latencies) {
        if (latency <= 0 || latency != latencies.front()) return false;
    }
    return true;
}

}  // namespace

int main() {
    const bool predicted = predict_side_by_side(), shared = share_cost_function();
    std::printf("predictors side by side: %s\none cost function for all: %s\n",
                predicted ? "same results" : "RESULTS DIFFER", shared ? "same results" : "RESULTS DIFFER");
    return predicted && shared ? 0 : 1;
}
