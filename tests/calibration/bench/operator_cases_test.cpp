#include "calibration/bench/operator_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "ftax/error.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "tests/cli/command.hpp"

using namespace ftax::bench;

TEST_CASE("every designed operator is a network with work and occurs once in the design") {
    for (const auto& cases : {cpu_operators(true), cpu_operators(false), gpu_operators(), gpu_operators(72)}) {
        std::set<std::string> seen;
        for (const OperatorCase& c : cases) {
            CAPTURE(c.op);
            CAPTURE(shape_text(c));
            const ftax::Graph graph = operator_graph(c);
            const ftax::Work work = total_work(graph, bind(graph, {}));
            CHECK(work.write_bytes > 0);
            CHECK(seen.insert(c.op + " " + shape_text(c)).second);
        }
    }
}

TEST_CASE("the design for a GPU has every class of operator, and both sides of the edges of its waves") {
    std::set<std::string> ops, filters;
    std::set<std::int64_t> batches, rows;
    for (const OperatorCase& c : gpu_operators(72)) {
        ops.insert(c.op);
        if (c.op == "bmm") batches.insert(c.shape.at("b"));
        if (c.op == "linear") rows.insert(c.shape.at("m"));
        if (c.op != "conv") continue;
        const auto groups = c.shape.find("groups");
        const std::string kind = groups == c.shape.end()               ? "dense"
                                 : groups->second == c.shape.at("cin") ? "depthwise"
                                                                       : "grouped";
        filters.insert(std::to_string(c.shape.at("kernel")) + " " + kind + " " + std::to_string(c.shape.at("stride")));
    }
    for (const char* op : {"linear", "bmm", "conv", "add", "relu", "gelu", "softmax", "ln", "bn", "maxpool", "avgpool",
                           "embedding", "cat", "copy", "attention", "rmsnorm", "rope", "silu_mul"})
        CHECK_MESSAGE(ops.contains(op), op);
    for (const char* filter : {"1 dense 1", "3 dense 1", "3 dense 2", "3 depthwise 1", "3 depthwise 2", "3 grouped 1"})
        CHECK_MESSAGE(filters.contains(filter), filter);
    for (const std::int64_t tiles : {71, 72, 73, 143, 144, 145}) {
        CHECK(batches.contains(tiles));
        CHECK(rows.contains(128 * tiles));
    }
    for (const std::int64_t row : {127, 128, 129}) CHECK(rows.contains(row));
    const std::vector<OperatorCase> all = gpu_operators();
    const auto has = [&](auto predicate) { return std::any_of(all.begin(), all.end(), predicate); };
    CHECK(has([](const OperatorCase& c) {
        return c.op == "linear" && c.shape.at("m") * c.shape.at("n") * c.shape.at("k") > 1LL << 37;
    }));
    CHECK(has([](const OperatorCase& c) {
        return c.op == "attention" && c.shape.at("s") == 8192 && c.shape.at("d") == 128 && c.shape.contains("causal");
    }));
    CHECK(has([](const OperatorCase& c) {
        return c.op == "attention" && c.shape.at("s") == 1 && c.shape.contains("kv_heads");
    }));
}

TEST_CASE("--list prints the design for a GPU, a JSON object a line") {
    for (const auto& [kind, cases] : {std::pair{"kernels", gpu_operators(132)}, {"dispatch", dispatch_operators()}}) {
        const auto listed = ftax::test::run_ftax({"measure", kind, "--device", "cuda", "--list"});
        REQUIRE(listed.exit_code == 0);
        std::istringstream lines(listed.output);
        std::string line;
        for (const OperatorCase& c : cases) {
            REQUIRE(std::getline(lines, line));
            const auto json = nlohmann::json::parse(line);
            CHECK(json["op"] == c.op);
            CHECK(json["shape"] == shape_text(c));
            CHECK(json["graph"] == to_text(operator_graph(c)));
        }
        CHECK_FALSE(std::getline(lines, line));
    }
}

TEST_CASE("dispatch has dense, depthwise and grouped convolutions, and products too short to hide it") {
    std::set<std::string> groups, products;
    for (const OperatorCase& c : dispatch_operators()) {
        if (c.op == "linear") products.insert(shape_text(c));
        if (c.op != "conv") continue;
        const auto count = c.shape.find("groups");
        groups.insert(count == c.shape.end() ? "1" : std::to_string(count->second));
    }
    CHECK(groups == std::set<std::string>{"1", "32", "64"});
    CHECK(products.contains("k=64 m=8 n=64"));
}

TEST_CASE("an operator's work is that of its shape") {
    const auto work = [](const OperatorCase& c) {
        const ftax::Graph graph = operator_graph(c);
        return total_work(graph, bind(graph, {}));
    };
    CHECK(work({"linear", {{"m", 2}, {"n", 3}, {"k", 5}}}).flops == 2 * 2 * 3 * 5);
    // 4 outputs a side: (9 + 2 − 3) / 2 + 1 = 5
    CHECK(work({"conv", {{"b", 1}, {"cin", 4}, {"cout", 6}, {"kernel", 3}, {"hw", 9}, {"stride", 2}, {"pad", 1}}})
              .flops == 2 * 6 * 4 * 9 * 25);
    CHECK(weight_bytes(operator_graph({"conv", {{"b", 1}, {"cin", 4}, {"cout", 6}, {"kernel", 3}, {"hw", 9}}})) ==
          6 * 4 * 9 * 4);
}

TEST_CASE("an unknown operator or a missing dimension is named") {
    CHECK_THROWS_WITH_AS(static_cast<void>(operator_graph({"warp", {}})), "unknown operator warp", ftax::Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(operator_graph({"linear", {{"m", 2}, {"n", 2}}})), "linear without k",
                         ftax::Error);
}
