#include <doctest/doctest.h>

#include <sstream>

#include "ftax/text_graph.hpp"
#include "src/report/model_report.hpp"

using namespace ftax;
using namespace ftax::report;

// What PyTorch 2.11 launches for these calls, by its profiler.

TEST_CASE("a reshape copies where strides leave no view, contiguous where its input is not") {
    const Graph graph = parse_text_graph(R"(graph views
input %x f32[4,6]
%t f32[6,4]{1,6} = transpose(%x) {perm=[1,0]} "aten::t"
%0 f32[24] = reshape(%t) "aten::reshape"
%1 f32[24] = reshape(%t) "aten::flatten"
%2 f32[2,12] = reshape(%x) "aten::reshape"
%3 f32[2,12] = reshape(%x) "aten::view"
%4 f32[6,4] = copy(%t) "aten::contiguous"
%5 f32[6,4] = copy(%4) "aten::contiguous"
%6 f32[6,4] = copy(%4) "aten::clone"
%7 f32[2,6]{6,1} = slice(%x) {axes=[0]} "aten::slice"
%8 f32[4,6] = pointwise(%x) {function="relu"} "aten::relu"
output %0
)");
    using enum Dispatch;
    const Dispatch expected[] = {view, kernel, kernel, view, view, kernel, host, kernel, view, kernel};
    const auto stream = op_stream(graph, {});
    REQUIRE(stream.size() == std::size(expected));
    for (std::size_t i = 0; i < stream.size(); ++i) CHECK_MESSAGE(stream[i].dispatch == expected[i], stream[i].source);
    CHECK(stream.back().flops == 24);
    CHECK(stream.back().bytes == 2 * 24 * 4);
    // Views and host operators move nothing, and the table says so.
    std::istringstream lines(stream_columns().select(stream).print({}));
    std::string line;
    std::getline(lines, line);
    for (std::size_t i = 0; i < stream.size(); ++i) {
        std::getline(lines, line);
        CHECK_MESSAGE(line.ends_with("B") == (expected[i] == kernel), line);
    }
}
