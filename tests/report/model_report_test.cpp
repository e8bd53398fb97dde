#include "src/report/model_report.hpp"

#include <doctest/doctest.h>

#include "ftax/graph_builder.hpp"
#include "ftax/text_graph.hpp"
#include "tests/recorded/transcripts.hpp"

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
    test::check_report("inspect.txt", to_table(report, {}));
    test::check_report("inspect.json", to_json(report));
    test::check_report("inspect.csv", to_csv(report));
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

TEST_CASE("the table of an open model lists four tensors of each side and counts the others") {
    for (std::size_t count = 0; count < 9; ++count) {
        for (const bool of_inputs : {false, true}) {
            report::OpenModelReport report;
            auto& tensors = of_inputs ? report.inputs : report.outputs;
            for (std::size_t i = 0; i < count; ++i) tensors.push_back("tensor" + std::to_string(i));
            const std::string text = to_table(report, {}), label = of_inputs ? "input " : "output";
            for (std::size_t i = 0; i < count; ++i)
                CHECK((text.find(label + " " + tensors[i] + "\n") != std::string::npos) == (i < 4));
            CAPTURE(count);
            CHECK((text.find(" more\n") != std::string::npos) == (count > 4));
            if (count > 4) CHECK(text.find(label + " … " + std::to_string(count - 4) + " more\n") != std::string::npos);
        }
    }
}

TEST_CASE("the share of modelled operators is that of those whose work is not guessed") {
    for (int guessed = 0; guessed < 4; ++guessed) {
        for (int known = 1; known < 4; ++known) {
            std::string text = "graph g\ninput %t0 f32[4,8]\n";
            int last = 0;
            const auto add = [&](const char* op) {
                text += "%t" + std::to_string(last + 1) + " f32[4,8] = " + op + "(%t" + std::to_string(last) + ")\n";
                ++last;
            };
            for (int i = 0; i < known; ++i) add("softmax");
            for (int i = 0; i < guessed; ++i) add("custom");
            const Graph graph = parse_text_graph(text + "output %t" + std::to_string(last) + "\n");
            CAPTURE(text);
            CHECK(report::model_report(graph, {}, 1).modelled_operators ==
                  doctest::Approx(static_cast<double>(known) / (known + guessed)));
        }
    }
}
