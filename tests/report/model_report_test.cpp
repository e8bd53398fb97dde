#include "src/report/model_report.hpp"

#include <doctest/doctest.h>

#include "ftax/graph_builder.hpp"
#include "ftax/text_graph.hpp"
#include "tests/golden.hpp"

using namespace ftax;

TEST_CASE("the work of a small network, by hand") {
    GraphBuilder net("tiny");
    const TensorId x = net.input("x", {"batch", "3", "8", "8"});
    const TensorId y = net.relu(net.conv(x, 4, {.kernel = 3, .pad = 1}, true));
    const Graph graph = net.finish({net.linear(net.flatten(net.global_average_pool(y), 1), 10)});
    const report::ModelReport report = report::model_report(graph, {{"batch", 2}}, 1);
    // conv: 2 × 4 × 8 × 8 outputs of 27 multiply-adds; linear: 2 × 10 outputs of 4.
    CHECK(report.total.macs == 2 * 4 * 64 * 27 + 2 * 10 * 4);
    CHECK(report.parameters == 4 * 27 + 4 + 10 * 4 + 10);
    CHECK(report.parameter_bytes == 4 * report.parameters);
    CHECK(report.total.operators == 5);
    CHECK(report.by_kind.front().name == "conv");
    CHECK(report.unknown_operators == 0);
    test::check_golden("inspect.txt", to_table(report, {}));
    test::check_golden("inspect.json", to_json(report));
    test::check_golden("inspect.csv", to_csv(report));
}

TEST_CASE("multiply-adds of an attention are those of its two products, without the softmax") {
    const Graph graph = parse_text_graph(
        "input %q f32[2,4,16,8]\ninput %k f32[2,4,20,8]\ninput %v f32[2,4,20,6]\n"
        "%y f32[2,4,16,6] = attention(%q, %k, %v)\noutput %y\n");
    const report::ModelReport report = report::model_report(graph, {}, 1);
    CHECK(report.total.macs == 2 * 4 * 16 * 20 * (8 + 6));
    CHECK(report.total.flops == 2 * 2 * 4 * 16 * 20 * (8 + 6 + 2));
}

TEST_CASE(
    "a tied weight counts once, under whichever of its names operators read it; an unread one of its own counts") {
    const Graph graph = parse_text_graph(
        "input %x f32[2,8]\nweight %shared f32[8,8]\nweight %embed f32[8,8]\nweight %unused f32[8,16]\n"
        "%y f32[2,8] = linear(%x, %embed)\noutput %y\n");
    CHECK(report::model_report(graph, {}, 1).parameters == 8 * 8 + 8 * 16);
}
