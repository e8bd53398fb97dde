#include "predictors/kernel_shapes.hpp"

#include <doctest/doctest.h>

#include <variant>

#include "ftax/text_graph.hpp"

using namespace ftax;

TEST_CASE("elementwise kernels move vectors where their operands are whole and of one type") {
    const Graph graph = parse_text_graph(R"(graph sums
input %x f32[batch,16,8]
input %y f32[batch,16,8]
weight %row f32[8]
weight %one f32[1]
%s f32[batch,16,8] = pointwise(%x,%y) {function="add"}
output %s
)");
    const BoundShapes bound = bind(graph, {{"batch", 4}});
    Schedule schedule;
    schedule.storage.assign(graph.tensors.size(), DType::f16);
    const auto is_vectorized = [&](const char* second) {
        Kernel sum;
        sum.op = 0;
        for (TensorId id = 0; id < graph.tensors.size(); ++id) {
            if (graph.tensors[id].name == "x" || graph.tensors[id].name == second) sum.reads.push_back(id);
            if (graph.tensors[id].name == "s") sum.writes.push_back(id);
        }
        REQUIRE(sum.reads.size() == 2);
        return std::get<kernels::MemoryShape>(kernel_shape(graph, schedule, sum, bound, false)).vectorized;
    };
    CHECK(is_vectorized("y"));
    CHECK(is_vectorized("one"));
    CHECK_FALSE(is_vectorized("row"));
    for (TensorId id = 0; id < graph.tensors.size(); ++id) {
        if (graph.tensors[id].name == "y") schedule.storage[id] = DType::f32;
    }
    CHECK_FALSE(is_vectorized("y"));
}
