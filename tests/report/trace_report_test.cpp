#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <tuple>

#include "ftax/text_graph.hpp"
#include "src/report/trace_comparison.hpp"
#include "tests/approx.hpp"
#include "tests/recorded/transcripts.hpp"

using namespace ftax;
using namespace ftax::report;

namespace {

Op op(OpKind kind, std::string source, std::string function = {}) {
    Op result{.kind = kind, .source = std::move(source)};
    if (!function.empty()) result.attributes.push_back({"function", std::move(function)});
    return result;
}

}  // namespace

TEST_CASE("a traced operator is matched by its name, else by its kind") {
    CHECK(resemblance(op(OpKind::conv, "aten::conv2d"), "aten::conv2d") == 2);
    CHECK(resemblance(op(OpKind::pointwise, "aten::relu", "relu"), "aten::relu_") == 1);
    CHECK(resemblance(op(OpKind::conv, "Conv"), "aten::conv2d") == 1);
    CHECK(resemblance(op(OpKind::linear, "Gemm"), "aten::linear") == 1);
    CHECK(resemblance(op(OpKind::pointwise, "Relu", "relu"), "aten::relu") == 1);
    CHECK(resemblance(op(OpKind::pointwise, "Add", "add"), "aten::relu") == 0);
    CHECK(resemblance(op(OpKind::linear, "Gemm"), "aten::empty") == 0);
}

TEST_CASE("an alignment wraps around, and skips what either side lacks") {
    const Op conv = op(OpKind::conv, "aten::conv2d"), relu = op(OpKind::pointwise, "aten::relu", "relu"),
             pool = op(OpKind::pool, "aten::max_pool2d");
    using Found = std::vector<std::optional<std::size_t>>;
    const std::vector<const Op*> model{&conv, &relu, &pool};
    CHECK(align_cyclically(model, {"aten::conv2d", "aten::relu", "aten::max_pool2d", "aten::conv2d", "aten::relu"}) ==
          Found{0, 1, 2, 0, 1});
    CHECK(align_cyclically(model, {"aten::max_pool2d", "aten::conv2d"}) == Found{2, 0});
    CHECK(align_cyclically(model, {"aten::conv2d", "aten::to", "aten::max_pool2d", "aten::copy_", "aten::conv2d"}) ==
          Found{0, std::nullopt, 2, std::nullopt, 0});
    CHECK(align_cyclically(model, {"aten::empty", "aten::to"}) == Found{std::nullopt, std::nullopt});
    CHECK(align_cyclically({}, {"aten::empty"}) == Found{std::nullopt});
    CHECK(align_cyclically(model, {}).empty());
}

TEST_CASE("a comparison finds the times that a trace was made with") {
    // Times in microseconds: two passes a millisecond apart and a third that the trace cuts off behind its first
    // operator. Kernels of conv2d: one starts 10 after its launch, a short one on another stream runs beside it, the
    // next is queued and starts 1 behind. relu waits for a copy, linear for the stream.
    KinetoTrace trace;
    std::uint64_t correlation = 0;
    const auto add = [&](TraceEventKind kind, const char* name, double start, double end, int thread = 1,
                         std::uint64_t joined = 0) {
        trace.events.push_back({.kind = kind,
                                .name = name,
                                .start_s = start * 1e-6,
                                .end_s = end * 1e-6,
                                .thread = thread,
                                .correlation = joined});
    };
    using enum TraceEventKind;
    const auto launch = [&](double start, double end, double begins, double ends) {
        add(runtime, "cudaLaunchKernel", start, end, 1, ++correlation);
        add(kernel, "k", begins, ends, 7, correlation);
    };
    add(operation, "ProfilerStep#1", 900, 4000);
    for (const double at : {1000.0, 2000.0, 3000.0}) {
        add(operation, "aten::convolution", at, at + 40);  // written before the operator that calls it
        add(operation, "aten::conv2d", at, at + 90);
        launch(at + 20, at + 25, at + 35, at + 65);
        launch(at + 33, at + 34, at + 40, at + 45);
        launch(at + 30, at + 32, at + 66, at + 86);
        if (at == 3000) break;
        add(operation, "aten::relu", at + 100, at + 150);
        add(runtime, "cudaMemcpy", at + 110, at + 130);
        add(operation, "aten::linear", at + 200, at + 260);
        launch(at + 210, at + 212, at + 224, at + 230);
        add(runtime, "cudaStreamSynchronize", at + 230, at + 250);
        add(operation, "aten::copy_", at + 300, at + 330);
    }
    add(operation, "aten::relu", 1500, 1900, 2);
    const Graph graph = parse_text_graph(R"(graph three
input %x f32[1,4,8,8]
weight %w f32[4,4,1,1]
weight %v f32[8,8]
%0 f32[1,4,8,8] = conv(%x, %w) {stride=[1,1] pad_begin=[0,0] pad_end=[0,0] dilation=[1,1] groups=1} "aten::conv2d"
%1 f32[1,4,8,8] = pointwise(%0) {function="relu"} "aten::relu"
%2 f32[1,4,8,8] = linear(%1, %v) "aten::linear"
output %2
)");
    Explanation explanation;
    for (const auto& [id, kind, host_s] : {std::tuple{OpId{0}, HostKind::conv, 70e-6},
                                           {OpId{1}, HostKind::elementwise, 50e-6},
                                           {OpId{2}, HostKind::elementwise, 30e-6}}) {
        OpPrediction& predicted = explanation.launches.emplace_back();
        predicted.op = id;
        predicted.host_kind = kind;
        predicted.host_s = host_s;
        predicted.kernels = 1;
    }
    const TraceComparison found = compare_with_trace(trace, device_spec("t4"), graph, explanation);
    CHECK(found.passes == 2);
    REQUIRE(found.operators.size() == 3);
    const auto times = [&](std::size_t i) { return found.operators[i].measured.value(); };
    CHECK(times(0).host_s == approx(100e-6));  // until the next operator
    CHECK(times(0).device_s == approx(55e-6));
    CHECK(times(0).kernels == 3);
    CHECK(times(1).host_s == approx(80e-6));
    CHECK(times(2).host_s == approx(40e-6));  // the last one: what it takes itself
    CHECK(times(2).device_s == approx(6e-6));
    CHECK(found.measured_latency_s.value() == approx(260e-6));
    REQUIRE(found.unpredicted.size() == 1);
    CHECK(found.unpredicted[0].calls == approx(2.0 / 3));
    CHECK(found.unpredicted[0].measured.host_s == approx(20e-6));
    CHECK(found.launch_latency_s.value() == approx(10e-6));
    CHECK(found.kernel_gap_s.value() == approx(1e-6));
    REQUIRE(found.host_kinds.size() == 2);
    CHECK(found.host_kinds[1].operators == 2);
    CHECK(found.host_kinds[1].measured_s == approx(60e-6));
    CHECK(found.host_kinds[1].predicted_s == approx(40e-6));
}

TEST_CASE("the comparison with a trace prints as expected") {
    KinetoTrace trace{.gpu = "Tesla T4",
                      .damage = {.unreadable = 1, .untimed = 2, .lost_kernels = 3, .truncated = true}};
    trace.events.resize(120);
    const TraceComparison comparison{
        .passes = 2,
        .aligned = 0.95,
        .has_kernels = true,
        .predicted = {90e-6, 60e-6, 2},
        .measured = {120e-6, 55e-6, 3},
        .predicted_latency_s = 130e-6,
        .measured_latency_s = 160e-6,
        .operators =
            {{"1", "aten::conv2d", "conv1", HostKind::conv, {80e-6, 50e-6, 1}, OperatorTimes{70e-6, 51e-6, 1}},
             {"2", "aten::relu_", "relu", HostKind::elementwise, {10e-6, 10e-6, 1}, OperatorTimes{50e-6, 4e-6, 2}},
             {"3", "aten::flatten", "", HostKind::view, {4e-6, 0, 0}, std::nullopt}},
        .unpredicted = {{"aten::\x1b[31mcopy_", 1.5, {20e-6, 7e-6, 1}}},
        .host_kinds = {{HostKind::conv, 1, 80e-6, 70e-6}, {HostKind::elementwise, 1, 10e-6, 50e-6}},
        .launch_latency_s = 5e-6};
    const std::vector<TracedParameter> parameters{{"host.conv", 82e-6, 72e-6}, {"launch_latency_s", 4e-6, 5e-6}};
    test::check_report("trace.txt", to_table(comparison, trace, parameters, {}));
    test::check_report("trace.json", to_json(comparison, trace, parameters));
}

TEST_CASE("of a prediction and a run the ratio is coloured where one is more than half as long again as the other") {
    const KinetoTrace trace{.gpu = "Tesla T4"};
    for (const double ratio : {0.2, 0.6, 0.66, 0.67, 0.9, 1.0, 1.2, 1.49, 1.51, 2.0, 7.0}) {
        CAPTURE(ratio);
        const double measured_s = 100e-6;
        const TraceComparison comparison{.passes = 1,
                                         .aligned = 1,
                                         .predicted = {ratio * measured_s, 0, 0},
                                         .measured = {measured_s, 0, 0},
                                         .operators = {{"1",
                                                        "aten::conv2d",
                                                        "",
                                                        HostKind::conv,
                                                        {ratio * measured_s, 0, 0},
                                                        OperatorTimes{measured_s, 0, 0}}},
                                         .host_kinds = {{HostKind::conv, 1, ratio * measured_s, measured_s}}};
        const std::string plain = to_table(comparison, trace, {}, {});
        const std::string coloured = to_table(comparison, trace, {}, {.colour = true});
        const std::string shown = fmt::format("{:.2f}", ratio);
        CHECK(plain.find(shown) != std::string::npos);
        const bool marked = coloured.find("m" + shown) != std::string::npos;
        CHECK_MESSAGE(marked == (ratio > 1.5 || ratio < 1 / 1.5), coloured);
    }
}
