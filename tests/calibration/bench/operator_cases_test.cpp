#include "calibration/bench/operator_cases.hpp"

#include <doctest/doctest.h>

#include <set>

#include "ftax/error.hpp"
#include "ftax/work.hpp"

using namespace ftax::bench;

TEST_CASE("every designed operator is a network with work, and stands in the design once") {
    for (const auto& cases : {cpu_operators(true), cpu_operators(false), gpu_operators()}) {
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
    CHECK_THROWS_WITH_AS(static_cast<void>(operator_graph({"warp", {}})), "no operator is called warp", ftax::Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(operator_graph({"linear", {{"m", 2}, {"n", 2}}})), "linear without k",
                         ftax::Error);
}
