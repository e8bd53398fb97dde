#include <doctest/doctest.h>

#include "ftax/error.hpp"
#include "ftax/text_graph.hpp"
#include "graphs/loading.hpp"
#include "tests/failure.hpp"

using namespace ftax;

namespace {

/// Multi-head attention as a vision transformer does it, for the given batch.
Graph attention(const std::string& b) {
    const auto of_batch = [&](std::string text) {
        for (std::size_t at = text.find('B'); at != std::string::npos; at = text.find('B')) text.replace(at, 1, b);
        return text;
    };
    return parse_text_graph(of_batch(R"(graph attention
input %x f32[B,16,32]
weight %w f32[96,32]
weight %position f32[1,16,32]
%0 f32[B,16,32] = pointwise(%x, %position) {function="add"}
%1 f32[B,16,96] = linear(%0, %w)
%2 f32[B,16,3,4,8] = reshape(%1)
%3 f32[3,B,4,16,8]{32,1536,8,96,1} = transpose(%2) {perm=[2,0,3,1,4]}
%q f32[B,4,16,8]{1536,8,96,1}, %k f32[B,4,16,8]{1536,8,96,1}, %v f32[B,4,16,8]{1536,8,96,1} = split(%3) {axis=0}
%4 f32[B,4,8,16]{1536,8,1,96} = transpose(%k) {perm=[0,1,3,2]}
%5 f32[B,4,16,16] = matmul(%q, %4)
%6 f32[B,4,16,16] = softmax(%5) {axis=3}
%7 f32[B,4,16,8] = matmul(%6, %v)
%8 f32[B,16,4,8]{512,8,128,1} = transpose(%7) {perm=[0,2,1,3]}
%9 f32[B,16,32] = reshape(%8)
%10 f32[B,32] = reduce(%9) {function="mean" axes=[1] keepdims=0}
output %10
)"));
}

}  // namespace

TEST_CASE("a graph of one batch size becomes the graph of any batch size") {
    for (const char* held : {"1", "4"}) {
        Graph graph = attention(held);
        vary_batch(graph, graph.expressions.symbol("batch"));
        CHECK(to_text(graph) == to_text(attention("batch")));
    }
}

TEST_CASE("the batch is traced through parts of dimensions and through constants") {
    // Rows of tokens and items; joined batches that are cut apart again; a table and a mask of the export's batch.
    const auto of_batch = [](std::string text, const std::string& b) {
        for (std::size_t at = text.find('B'); at != std::string::npos; at = text.find('B')) text.replace(at, 1, b);
        return parse_text_graph(text);
    };
    const std::string rows = R"(graph rows
input %x f32[B,16,32]
weight %w f32[64,32]
weight %v f32[32,64]
%0 f32[16,B,32]{32,512,1} = transpose(%x) {perm=[1,0,2]}
%1 f32[16*B,32] = reshape(%0)
%2 f32[16*B,64] = linear(%1, %w)
%3 f32[16,B,64] = reshape(%2)
%4 f32[16,8*B,8] = reshape(%3)
%5 f32[16,8*B,8] = softmax(%4) {axis=2}
%6 f32[16*B,64] = reshape(%5)
%7 f32[16*B,32] = linear(%6, %v)
output %7
)";
    const std::string joined = R"(graph joined
input %x f32[B,4,8]
%0 f32[2*B,4,8] = concat(%x, %x) {axis=0}
%1 f32[2*B,4,8] = softmax(%0) {axis=2}
%2 f32[B,4,8], %3 f32[B,4,8] = split(%1) {axis=0}
%4 f32[B,4,8] = pointwise(%2, %3) {function="add"}
output %4
)";
    for (const std::string& text : {rows, joined}) {
        for (const char* held : {"1", "3"}) {
            Graph graph = of_batch(text, held);
            vary_batch(graph, graph.expressions.symbol("batch"));
            CHECK(to_text(graph) == to_text(of_batch(text, "batch")));
        }
    }
    const std::string table = R"(graph table
input %x f32[B,4,8]
weight %w f32[B,4,8]
%z f32[B,1,8] = fill()
%0 f32[B,4,8] = pointwise(%x, %w) {function="add"}
%1 f32[B,5,8] = concat(%z, %0) {axis=1}
output %1
)";
    Graph graph = of_batch(table, "3");
    vary_batch(graph, graph.expressions.symbol("batch"));
    CHECK(to_text(graph) == to_text(of_batch(table, "batch")));
}

TEST_CASE("dimensions outside of the batch in memory step over the whole batch") {
    Graph graph = parse_text_graph(R"(graph recurrent
input %x f32[2,5,3]
%1 f32[5,2,3]{3,15,1} = transpose(%x) {perm=[1,0,2]}
%2 f32[5,2,3] = copy(%1)
%3 f32[2,5,3]{3,6,1} = transpose(%2) {perm=[1,0,2]}
output %3
)");
    vary_batch(graph, graph.expressions.symbol("batch"));
    const Tensor& last = graph.tensors[graph.outputs[0]];
    CHECK(graph.expressions.to_string(last.strides[1]) == "3*batch");
    CHECK(graph.expressions.to_string(last.strides[0]) == "3");
}

TEST_CASE("an operator that mixes the batch into something else is named") {
    Graph graph = parse_text_graph(
        "graph g\ninput %x f32[2,3]\n%1 f32[3] = reduce(%x) {function=\"sum\" axes=[0]} : total\noutput %1\n");
    const test::Failure failure = test::failure_of([&] { vary_batch(graph, graph.expressions.symbol("batch")); });
    CHECK(failure.code == ErrorCode::usage);
    CHECK(failure.says("total"));
    Graph two = parse_text_graph("graph g\ninput %x f32[2,3]\ninput %y f32[4,3]\noutput %x\n");
    CHECK_THROWS_AS(vary_batch(two, two.expressions.symbol("batch")), Error);
}

TEST_CASE("each operator leaves the batch where its semantics put it, whatever was exported") {
    // The batch in rows or columns of a product, behind an axis that is looked up, selected or reduced, as a table's
    // index.
    const std::vector<std::string> steps{
        "weight %w f32[3,8,5]\n%1 f32[3,B,5] = matmul(%x, %w)",
        "weight %w f32[3,4,8]\n%0 f32[8,B]{1,8} = transpose(%x) {perm=[1,0]}\n%1 f32[3,4,B] = matmul(%w, %0)",
        "weight %w f32[3,4,8]\n%1 f32[3,4,B] = matmul(%w, %x) {transpose_b=1}",
        "weight %w f32[6,8]\n%1 f32[B,6] = matmul(%x, %w) {transpose_b=1}",
        "weight %w f32[7,B,8]\nweight %i i64[2,3]\n%0 f32[7,B,8] = pointwise(%x, %w) {function=\"add\"}\n"
        "%1 f32[2,3,B,8] = gather(%0, %i) {axis=0}",
        "weight %i i64[2,3]\n%1 f32[B,2,3] = gather(%x, %i) {axis=1}",
        "weight %w f32[7,B,8]\n%0 f32[7,B,8] = pointwise(%x, %w) {function=\"add\"}\n"
        "%1 f32[B,8]{8,1} = slice(%0) {axis=0 axes=[0]}",
        "weight %w f32[7,B,8]\n%0 f32[7,B,8] = pointwise(%x, %w) {function=\"add\"}\n"
        "%1 f32[B] = reduce(%0) {function=\"sum\" axes=[0,2] keepdims=0}",
        "weight %w f32[7,B,8]\n%0 f32[7,B,8] = pointwise(%x, %w) {function=\"add\"}\n"
        "%1 f32[1,B,8] = reduce(%0) {function=\"sum\" axes=[0] keepdims=1}",
        "weight %w f32[7,B,8]\n%0 f32[7,B,8] = pointwise(%x, %w) {function=\"add\"}\n"
        "%1 f32[7,B,16] = concat(%0, %0) {axis=2}",
    };
    for (const std::string& step : steps) {
        CAPTURE(step);
        const auto of_batch = [&](const std::string& b) {
            std::string text = "graph one\ninput %x f32[B,8]\n" + step + "\noutput %1\n";
            for (std::size_t at = text.find('B'); at != std::string::npos; at = text.find('B')) text.replace(at, 1, b);
            return parse_text_graph(text);
        };
        for (const char* held : {"1", "3"}) {
            if (step.find("weight %w f32[7,B") != std::string::npos && held[0] == '1') continue;  // one for all items
            Graph graph = of_batch(held);
            vary_batch(graph, graph.expressions.symbol("batch"));
            CHECK(to_text(graph) == to_text(of_batch("batch")));
        }
    }
}

TEST_CASE("a slice along the batch is a whole batch of those that were joined, or refused") {
    for (int joined = 1; joined < 4; ++joined) {
        for (int part = 1; part <= 3 * joined; ++part) {
            std::string text = "graph cut\ninput %x f32[3,8]\n%0 f32[" + std::to_string(3 * joined) + ",8] = concat(%x";
            for (int i = 1; i < joined; ++i) text += ", %x";
            text += ") {axis=0}\n%1 f32[" + std::to_string(part) + ",8]{8,1} = slice(%0) {axes=[0] step=[1]} : cut\n";
            Graph graph = parse_text_graph(text + "output %1\n");
            const test::Failure failure =
                test::failure_of([&] { vary_batch(graph, graph.expressions.symbol("batch")); });
            CAPTURE(joined);
            CAPTURE(part);
            const bool whole = part == 3 || part == 3 * joined;
            CHECK(static_cast<bool>(failure) == !whole);
            if (failure) CHECK(failure.says("cut"));
        }
    }
}
