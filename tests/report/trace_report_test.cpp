#include <doctest/doctest.h>

#include "src/report/trace_comparison.hpp"
#include "tests/golden.hpp"

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
    test::check_golden("trace.txt", to_table(comparison, trace, parameters, {}));
    test::check_golden("trace.json", to_json(comparison, trace, parameters));
}
