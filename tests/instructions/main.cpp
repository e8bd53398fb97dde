#include <cstdio>
#include <random>
#include <span>
#include <vector>

#include "ftax/generate.hpp"
#include "ftax/import.hpp"
#include "ftax/nas.hpp"
#include "ftax/predict.hpp"
#include "ftax/serve.hpp"
#include "predictors/analysis/step_table.hpp"
#include "predictors/kernels/gemm.hpp"
#include "tests/start_values.hpp"

// The work whose instructions check.sh counts: callgrind collects inside one gate_* function at a time.

namespace {

using namespace ftax;
using namespace ftax::kernels;

constexpr int repetitions = 100;

/// One architecture at a time: the form for many starts threads, which callgrind counts apart.
void cost_each(const nas::CostFunction& cost, std::span<const int> choices, std::span<double> latency_s) {
    const std::size_t nodes = choices.size() / repetitions;
    for (std::size_t i = 0; i < repetitions; ++i) cost.cost(choices.subspan(i * nodes, nodes), latency_s);
}

}  // namespace

extern "C" {

[[gnu::noinline]] Graph gate_load() {
    return load_graph("zoo:resnet50");
}

[[gnu::noinline]] double gate_predict(Predictor& predictor) {
    double total_s = 0;
    for (int batch = 1; batch <= repetitions; ++batch) total_s += predictor.predict({{"batch", batch}}).latency_s;
    return total_s;
}

[[gnu::noinline]] double gate_kernel(const DeviceRates& rates, const GemmParameters& p) {
    double total_s = 0;
    for (int m = 1; m <= repetitions; ++m) {
        const GemmShape shape{.m = 32 * m, .n = 3072, .k = 768, .linear = true};
        total_s += plan(shape, rates, p).seconds;
    }
    return total_s;
}

/// One combination of `ftax serve`: a thousand requests, and predictions of the steps that serve them.
[[gnu::noinline]] double gate_serve(const Graph& graph) {
    Generator generator(graph, device_profile("h100-sxm5-80gb"), framework_profile("vllm"));
    StepTable table(generator, {});
    const auto step = [&](const StepLoad& load) { return table(load); };
    constexpr std::int64_t requests = 1000, prompt = 512, output = 128;
    constexpr double rate = 5, spread = 0;
    return serve(draw_requests(requests, rate, prompt, output, spread, 1), {.options = {}, .step = step}).tpot_s.mean;
}

/// The first costs of a space learn its blocks.
[[gnu::noinline]] void gate_learn(const nas::CostFunction& cost, std::span<const int> choices,
                                  std::span<double> latency_s) {
    cost_each(cost, choices, latency_s);
}

[[gnu::noinline]] void gate_nas(const nas::CostFunction& cost, std::span<const int> choices,
                                std::span<double> latency_s) {
    cost_each(cost, choices, latency_s);
}

}  // extern "C"

int main(int argc, char**) {
    if (argc > 1) {
        std::printf("%s\n", __VERSION__);
        return 0;
    }
    const Graph graph = gate_load();
    Predictor predictor(graph, device_profile("t4"), framework_profile("pytorch-eager"));
    static_cast<void>(predictor.predict({{"batch", 1}}));  // warm: buffers have their size
    double sum = gate_predict(predictor);

    DeviceRates rates;
    rates.sms = 72;
    rates.l2_bytes = 6e6;
    rates.boost_clock_hz = 1.7e9;
    rates.arithmetic_power_w = 210;
    rates.energy_per_flop_j = 12e-12;
    rates.flops_per_s = rates.fp32_flops_per_s = 16e12;
    rates.bandwidth_bytes_per_s = 672e9;
    rates.floor_s = 2e-6;
    const DeviceProfile turing = device_profile("t4");
    rates.chip = &turing.device.chip();
    sum += gate_kernel(rates, test::start_values<GemmParameters>());

    const nas::Space& space = nas::space("nasbench201");
    const nas::CostFunction cost(space, device_profile("t4"), framework_profile("pytorch-eager"), {}, {1, 32});
    std::mt19937 random(1);
    std::vector<int> choices;
    for (int i = 0; i < repetitions; ++i) {
        for (const int options : space.options())
            choices.push_back(static_cast<int>(random() % static_cast<unsigned>(options)));
    }
    sum += gate_serve(load_graph("zoo:llama-3-8b"));
    double latency_s[2];
    gate_learn(cost, choices, latency_s);
    gate_nas(cost, choices, latency_s);
    return sum + latency_s[0] > 0 ? 0 : 1;
}
