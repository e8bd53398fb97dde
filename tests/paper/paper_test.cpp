#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>

#include "ftax/headroom.hpp"
#include "ftax/import.hpp"
#include "ftax/predict.hpp"

// What "The Framework Tax" (Fernandez et al., EMNLP 2023, arXiv 2302.06117) printed, beside what ftax says of the same
// runs from its datasheet and profiles, nothing anchored. The figures are the paper's.

using namespace ftax;

namespace {

Prediction predict(const Graph& graph, const std::string& framework, std::int64_t batch, std::int64_t seq) {
    // The paper's PyTorch is of 2022; its CUDA graphs were captured by hand, without copies of weights.
    Predictor predictor(graph, device_profile("quadro-rtx-8000"), framework_profile(framework),
                        {.precision = Precision::fp16, .libraries = {.torch = 112}});
    return predictor.predict({{"batch", batch}, {"seq", seq}});
}

double ratio(double predicted, double measured) {
    return std::exp(std::abs(std::log(predicted / measured)));
}

}  // namespace

TEST_CASE("paper, figure 3: BERT's latency is flat while the GPU waits, then follows the kernels") {
    struct Point {
        std::int64_t batch;
        double latency_ms, kernel_ms;
    };
    constexpr Point measured[] = {{1, 16.44, 2.89},   {2, 14.87, 2.96},   {4, 14.75, 3.90},  {8, 14.76, 6.01},
                                  {16, 14.55, 10.86}, {32, 19.05, 18.11}, {64, 33.37, 32.65}};
    const Graph bert = load_graph("bert");
    for (const Point& point : measured) {
        const Prediction p = predict(bert, "pytorch-eager", point.batch, 128);
        MESSAGE("batch ", point.batch, ": latency ", p.latency_s * 1e3, " ms, paper ", point.latency_ms, "; kernels ",
                p.device_s * 1e3, " ms, paper ", point.kernel_ms);
        // At batch 16 host and kernels are within a third of one another, in the paper as here.
        if (point.batch != 16) CHECK((p.bound == Bound::host) == (point.batch < 16));
        // The host that the paper used is not calibrated: its speed is unknown to a factor of two.
        CHECK(ratio(p.latency_s * 1e3, point.latency_ms) < (point.batch <= 16 ? 2.0 : 1.3));
        if (point.batch >= 16) CHECK(ratio(p.device_s * 1e3, point.kernel_ms) < 1.25);
    }
}

TEST_CASE("paper, table 1: a wider, a longer or a larger-batch BERT costs the same at batch 1") {
    const Graph bert = load_graph("bert");
    const double base_s = predict(bert, "pytorch-eager", 1, 128).latency_s;
    const double batched_s = predict(bert, "pytorch-eager", 4, 128).latency_s;
    const double longer_s = predict(bert, "pytorch-eager", 1, 512).latency_s;
    const double wider_s =
        predict(widened(bert, {{"batch", 1}, {"seq", 128}}, 2, 1), "pytorch-eager", 1, 128).latency_s;
    MESSAGE("ms: base ", base_s * 1e3, ", batch 4 ", batched_s * 1e3, ", 512 tokens ", longer_s * 1e3,
            ", twice as wide ", wider_s * 1e3, "; paper 13.6, 13.4, 13.4, 13.4");
    for (const double other_s : {batched_s, longer_s, wider_s}) CHECK(ratio(other_s, base_s) < 1.1);
}

TEST_CASE("paper, table 3: frameworks rank as measured for BERT at batch 1") {
    const Graph bert = load_graph("bert");
    const std::pair<const char*, double> measured[] = {
        {"pytorch-eager", 10.54}, {"torchscript", 6.14}, {"cuda-graph", 2.82}, {"onnxruntime-cuda", 2.56}};
    std::map<double, double> predicted_s;  // by what the paper measured
    for (const auto& [framework, latency_ms] : measured) {
        predicted_s[latency_ms] = predict(bert, framework, 1, 128).latency_s;
        MESSAGE(std::string(framework), ": ", predicted_s[latency_ms] * 1e3, " ms, paper ", latency_ms);
    }
    for (const auto& [faster_ms, faster_s] : predicted_s) {
        for (const auto& [slower_ms, slower_s] : predicted_s) {
            if (slower_ms > 1.25 * faster_ms) CHECK(slower_s > faster_s);
        }
    }
}

TEST_CASE("paper, table 1: headroom finds the wider and the longer BERT") {
    const Graph bert = load_graph("bert");
    std::map<std::string, double> growth;
    const Predictor predictor(bert, device_profile("quadro-rtx-8000"), framework_profile("pytorch-eager"),
                              {.precision = Precision::fp16});
    for (const Headroom& headroom : find_headroom(bert, predictor, {{"batch", 1}, {"seq", 128}}, 0.1)) {
        growth[headroom.property] = headroom.to / headroom.from;
        MESSAGE(headroom.property, " x ", growth[headroom.property]);
    }
    // The paper's rows, all at the latency of the first: hidden 1536 for 768, 512 tokens for 128, batch 4 for 1.
    CHECK(growth.at("width") >= 1536 / 768);
    CHECK(growth.at("seq") >= 512 / 128);
    CHECK(growth.at("batch") >= 4);
    CHECK(growth.at("depth") < 1.2);  // every layer costs the host again
}

TEST_CASE("paper, table 3: frameworks rank in SM activity as measured for BERT at batch 1") {
    const Graph bert = load_graph("bert");
    struct Row {
        const char* framework;
        double sm_active_percent, warp_occupancy_percent;
    };
    constexpr Row measured[] = {{"pytorch-eager", 2.6, 0.9},
                                {"torchscript", 18.5, 3.0},
                                {"onnxruntime-cuda", 22.3, 9.5},
                                {"cuda-graph", 57, 9.2},
                                {"onnxruntime-cuda-graph", 59, 20.3}};
    double before = 0, before_percent = 0;
    for (const Row& row : measured) {
        const Prediction p = predict(bert, row.framework, 1, 128);
        MESSAGE(std::string(row.framework), ": SM active ", 100 * p.sm_active, " %, paper ", row.sm_active_percent,
                "; warps ", 100 * p.warp_occupancy, " %, paper ", row.warp_occupancy_percent);
        // The paper's two CUDA graphs, 57 and 59 %, are too close to rank; ours are 77 and 68 %.
        if (row.sm_active_percent > 1.1 * before_percent) {
            // ONNX Runtime and a CUDA graph come out alike (0.626 both); the fit decides which is first.
            CHECK(p.sm_active > before - 0.005);
        } else {
            CHECK(ratio(p.sm_active, before) < 1.2);
        }
        CHECK(p.warp_occupancy < p.sm_active);
        before = p.sm_active;
        before_percent = row.sm_active_percent;
    }
}
