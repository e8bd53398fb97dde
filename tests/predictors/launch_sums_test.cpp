#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "ftax/generate.hpp"
#include "ftax/import.hpp"
#include "ftax/text_graph.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/kernels/device_model.hpp"
#include "predictors/kernels/power.hpp"
#include "predictors/lowering/kernel_shapes.hpp"
#include "predictors/lowering/lowering.hpp"
#include "predictors/timeline/launch_costs.hpp"
#include "tests/approx.hpp"

// A prediction follows from its launches, and the host time of a launch from what the framework's profile costs.

using namespace ftax;

namespace {

struct Run {
    Prediction prediction;
    std::vector<LaunchCosts> launches;
    HostCosts costs;
    DeviceProfile device;
};

Run run(const Graph& graph, const char* device, const std::string& framework, const ShapeBindings& bindings,
        PredictOptions options = {}) {
    Predictor predictor(graph, device_profile(device), framework_profile(framework), options);
    Run run{.costs = host_costs(predictor.framework(), predictor.options(), predictor.device().device),
            .device = predictor.device()};
    run.prediction = predictor.predict(bindings, run.launches);
    return run;
}

template <class Value>
double total(const Run& run, Value value) {
    return std::accumulate(run.launches.begin(), run.launches.end(), 0.0,
                           [&](double sum, const LaunchCosts& launch) { return sum + value(launch); });
}

bool is_engine_of_sequences(const std::string& framework) {
    return framework_model(framework).traits.serves_sequences;
}

}  // namespace

TEST_CASE("a launch costs the host its kind, the modules entered before it, the parts of its list and its BLAS call") {
    for (const char* model : {"bert", "densenet", "resnet18"}) {
        const Graph graph = load_graph(model);
        ShapeBindings bindings{{"batch", 2}};
        if (std::string(model) == "bert") bindings["seq"] = 32;
        for (const std::string& framework : framework_names()) {
            if (is_engine_of_sequences(framework)) continue;
            if (framework.starts_with("onnxruntime")) continue;  // whose nodes may be several calls, some on the CPU
            CAPTURE(std::string(model));
            CAPTURE(framework);
            const Run r = run(graph, "t4", framework, bindings);
            for (const LaunchCosts& launch : r.launches) {
                double host_s = r.costs[launch.host_kind] + launch.module_calls * r.costs[HostKind::module_call] +
                                launch.list_parts * r.costs[HostKind::list_part];
                if (launch.host_kind != HostKind::graph_node) host_s += launch.step_launches * r.costs.step_launch_s;
                if (launch.blas_call) host_s += r.costs.blas_call_s;
                CHECK(launch.host_s == approx(host_s));
            }
            const bool eager = framework == "pytorch-eager";
            if (eager)
                CHECK(total(r, [](const auto& l) { return l.module_calls; }) == double(graph.module_calls.size()));
        }
    }
}

TEST_CASE("figures of a prediction are the sums of its launches") {
    for (const char* framework : {"pytorch-eager", "torch-tensorrt", "cuda-graph", "tensorrt"}) {
        for (const std::int64_t batch : {1, 64}) {
            CAPTURE(std::string(framework));
            CAPTURE(batch);
            const Graph graph = load_graph("resnet50");
            const Run r = run(graph, "a100-sxm4-40gb", framework, {{"batch", batch}});
            const Prediction& p = r.prediction;
            CHECK(p.host_s == approx(total(r, [](const auto& l) { return l.host_s; })));
            CHECK(p.device_s == approx(total(r, [](const auto& l) { return l.device_s; })));
            CHECK(p.sm_active == approx(total(r, [](const auto& l) { return l.sm_active_s; }) / p.latency_s));
            CHECK(p.warp_occupancy == approx(total(r, [](const auto& l) { return l.warps_active_s; }) / p.latency_s));
            const double calls_s = total(r, [&](const auto& l) {
                return (l.blas_call ? r.costs.blas_call_s : 0) + (l.host_kind == HostKind::engine_call ? l.host_s : 0);
            });
            CHECK(p.host_relative_stddev == approx(r.costs.host_relative_stddev(calls_s / p.host_s)));
            std::array<double, factor_count> class_s{};
            for (const LaunchCosts& l : r.launches) class_s[static_cast<std::size_t>(l.factor)] += l.device_s;
            CHECK(r.device.factors.log_stddev(class_s) > 0);
            CHECK(p.device_relative_stddev ==
                  approx(std::hypot(r.costs.device_relative_stddev, r.device.factors.log_stddev(class_s),
                                    p.evidence_relative_stddev)));
            const double full_w = r.device.device.idle_power_w() + kernels::arithmetic_power_w(r.device.device);
            CHECK(p.power_w <= full_w);
            CHECK(p.power_w > mean_power_w(r.device.device, p.latency_s, p.sm_active * p.latency_s, 0));
            // A board whose kernels wait for the host three quarters of the time draws little.
            if (p.host_s > 4 * p.device_s) CHECK(p.power_w < (full_w + r.device.device.idle_power_w()) / 2);
        }
    }
}

TEST_CASE("a board that decodes draws what was measured, and a server's draws no less while it waits for the host") {
    const Graph graph = load_graph("llama-2-7b");
    const auto step = [&](const char* device, const char* framework) {
        return run(graph, device, framework, {{"batch", 1}, {"seq", 1}, {"past", 500}}, {.precision = Precision::fp16});
    };
    // A V100 SXM2 draws 180 to 200 W: github.com/1CatAI/1Cat-vLLM/issues/535.
    CHECK(step("v100-sxm2-32gb", "vllm").prediction.power_w == approx(190).epsilon(0.06));
    const Run waits = step("h100-sxm5-80gb", "vllm-eager");
    const Prediction& p = waits.prediction;
    CHECK(p.host_s > 1.5 * p.device_s);
    CHECK(p.power_w > mean_power_w(waits.device.device, 1, 1 - p.device_s / p.latency_s, 0));
}

TEST_CASE("kernels that the power limit slows keep their SMs as much longer") {
    const Graph graph = load_graph("bert");
    const Run r = run(graph, "t4", "pytorch-eager", {{"batch", 64}, {"seq", 128}}, {.precision = Precision::fp16});
    bool slowed = false;
    for (const LaunchCosts& l : r.launches) {
        if (l.kernels != 1 || l.device_s == l.boost_s) continue;
        slowed = true;
        CHECK(l.throttling_s > 0);
        CHECK(l.sm_active_s <= l.device_s * (1 + 1e-9));
        CHECK(l.sm_active_s / l.device_s > 0.2);
    }
    CHECK(slowed);
    // All SMs of a T4 hold blocks of a large layer's kernel: they do so for as long as it takes under the limit.
    double fullest = 0;
    for (const LaunchCosts& l : r.launches) {
        if (l.kernels == 1 && l.device_s > l.boost_s) fullest = std::max(fullest, l.sm_active_s / l.device_s);
    }
    CHECK(fullest > 0.95);
}

TEST_CASE(
    "a step of decoding that an engine captured has no calls of its own: one launch for the graph, and its nodes") {
    const Graph graph = load_graph("llama-3-8b");
    const ShapeBindings step{{"batch", 4}, {"seq", 1}, {"past", 100}};
    PredictOptions options{.precision = Precision::bf16};
    options.libraries.engine = 6;
    const Run captured = run(graph, "h100-sxm5-80gb", "vllm", step, options);
    options.libraries.engine = 2;  // before vLLM 0.3
    const Run launched = run(graph, "h100-sxm5-80gb", "vllm", step, options);
    for (std::size_t i = 1; i < captured.launches.size(); ++i) {
        CHECK(captured.launches[i].host_kind == HostKind::graph_node);
        CHECK_FALSE(captured.launches[i].blas_call);
    }
    CHECK(captured.prediction.host_s < 0.5 * launched.prediction.host_s);
    const Run prompt = run(graph, "h100-sxm5-80gb", "vllm", {{"batch", 1}, {"seq", 64}, {"past", 0}}, options);
    CHECK(total(prompt, [](const auto& l) { return l.host_kind == HostKind::graph_node ? 1 : 0; }) == 0);
}

TEST_CASE("a network whose operators have no rule is covered by what the others take, on the host and the device") {
    const Graph graph = load_graph("resnet18");
    Graph odd = graph;
    std::size_t changed = 0;
    for (std::size_t i = 0; i < odd.ops.size(); ++i) {
        if (odd.ops[i].kind != OpKind::pointwise) continue;
        odd.ops[i].kind = OpKind::custom;
        ++changed;
    }
    const Run r = run(odd, "t4", "pytorch-eager", {{"batch", 1}});
    double guessed_s = 0;
    for (const LaunchCosts& l : r.launches) {
        if (l.op != no_op && odd.ops[l.op].kind == OpKind::custom) guessed_s += l.host_s + l.device_s;
    }
    CHECK(r.prediction.coverage.nodes == approx(1 - double(changed) / double(odd.ops.size())));
    CHECK(r.prediction.coverage.time == approx(1 - guessed_s / (r.prediction.host_s + r.prediction.device_s)));
}

TEST_CASE("the kernels of a pass, equal ones counted, take what its launches take") {
    for (const char* model : {"resnet18", "squeezenet", "gpt2"}) {
        CAPTURE(std::string(model));
        const Graph graph = load_graph(model);
        ShapeBindings bindings{{"batch", 4}};
        if (std::string(model) == "gpt2") bindings["seq"] = 16;
        const DeviceProfile device{.device = device_spec("v100-sxm2-32gb")};
        Predictor predictor(graph, device, framework_profile("pytorch-eager"));
        std::vector<LaunchCosts> launches;
        static_cast<void>(predictor.predict(bindings, launches));
        const Schedule schedule = lower(graph, device.device, {}, framework_model("pytorch-eager").traits);
        const std::vector<CountedKernel> kernels = list_kernels(graph, schedule, ftax::bind(graph, bindings));
        double boost_s = 0, count = 0, launched = 0;
        for (const LaunchCosts& l : launches) boost_s += l.boost_s, launched += l.kernels;
        for (const CountedKernel& kernel : kernels) count += kernel.count;
        CHECK(count == launched);
        CHECK(double(kernels.size()) < count);
        CHECK(sum_time(kernels, std::get<KernelModels>(device_model(device))).seconds == approx(boost_s));
    }
}

TEST_CASE("what ONNX Runtime's host computes is copied there and back, what stays there is not") {
    const auto host_s = [](const std::string& second, const std::string& third) {
        const Graph graph = parse_text_graph(
            "graph crossing\ninput %x f32[batch,1048576]\n"
            "%a f32[batch,1048576] = pointwise(%x) {function=\"relu\"} \"Relu\"\n"
            "%b f32[batch,1048576] = pointwise(%a) {function=\"mul\"} \"" +
                second +
                "\"\n"
                "%c f32[batch,1048576] = pointwise(%b) {function=\"mul\"} \"" +
                third +
                "\"\n"
                "%y f32[batch,1048576] = pointwise(%c) {function=\"relu\"} \"Relu\"\noutput %y\n",
            "crossing.txt");
        const Run r = run(graph, "t4", "onnxruntime-cuda", {{"batch", 16}});
        return r.prediction.host_s;
    };
    const double copy_s = 16 * 4.0 * 1048576 / 12e9;  // over PCIe
    const double none = host_s("Mul", "Mul"), one = host_s("QLinearMul", "Mul"),
                 both = host_s("QLinearMul", "QLinearMul");
    // One operator pays two copies and its own work, two pay as many copies and twice the work.
    const double work_s = both - one;
    CHECK(work_s > 0);
    CHECK(one - none == approx(2 * copy_s + work_s).epsilon(0.02));
}

TEST_CASE(
    "the gap between kernels is that of the generation where it was measured, and a measured host keeps its own") {
    const auto gap_s = [](std::string_view framework, std::string_view device, int engine = 0) {
        return kernel_gap_s(framework_profile(framework), {.engine = engine}, device_spec(device));
    };
    CHECK(gap_s("pytorch-eager", "h100-sxm5-80gb") == 1.65e-6);
    CHECK(gap_s("pytorch-eager", "b200") == gap_s("pytorch-eager", "h100-sxm5-80gb"));
    CHECK(gap_s("torch-cuda-graph", "h200-sxm-141gb") == 7.4e-7);
    CHECK(gap_s("pytorch-eager", "t4") == 1e-6);
    CHECK(gap_s("vllm", "h100-sxm5-80gb") == gap_s("vllm", "t4"));
    CHECK(gap_s("sglang", "h100-sxm5-80gb") == 1e-6);
    CHECK(gap_s("sglang", "b200") == 0);  // programmatic dependent launch
    CHECK(gap_s("llama.cpp", "h100-sxm5-80gb", 202605) == gap_s("llama.cpp", "rtx-4090", 202605) / 2);
    CHECK(gap_s("llama.cpp", "h100-sxm5-80gb", 202604) > 0);
    CHECK(gap_s("llama.cpp", "rtx-4090", 202605) > 0);
    // An engine's gaps are cycles: 0.7 us at the 1.41 GHz of an A100, an L40S has 2.52.
    CHECK(gap_s("tensorrt", "a100-sxm4-40gb") == approx(0.7e-6));
    CHECK(gap_s("tensorrt-cuda-graph", "l40s") == approx(0.7e-6 * 1.41 / 2.52));
    FrameworkProfile measured = framework_profile("pytorch-eager");
    measured.host = "mine";
    CHECK(kernel_gap_s(measured, {}, device_spec("h100-sxm5-80gb")) == 1e-6);
    CHECK(host_costs(measured, PredictOptions{.precision = Precision::fp16}, device_spec("t4")).kernel_gap_s == 1e-6);
}

TEST_CASE("a predictor that keeps the plans of the size before gives each size what a new one gives") {
    for (const char* model : {"bert", "resnet18"}) {
        const Graph graph = load_graph(model);
        Predictor kept(graph, device_profile("t4"), framework_profile("pytorch-eager"), {});
        for (const std::int64_t batch : {1, 64, 1, 3}) {
            for (const std::int64_t seq : {32, 128}) {
                ShapeBindings bindings{{"batch", batch}};
                if (std::string(model) == "bert") bindings["seq"] = seq;
                std::vector<LaunchCosts> launches;
                const Prediction prediction = kept.predict(bindings, launches);
                const Run fresh = run(graph, "t4", "pytorch-eager", bindings);
                CHECK(prediction.latency_s == fresh.prediction.latency_s);
                CHECK(prediction.power_w == fresh.prediction.power_w);
                REQUIRE(launches.size() == fresh.launches.size());
                for (std::size_t i = 0; i < launches.size(); ++i) {
                    CHECK(launches[i].op == fresh.launches[i].op);
                    CHECK(launches[i].device_s == fresh.launches[i].device_s);
                }
            }
        }
    }
}
