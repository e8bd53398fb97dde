
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "ftax/text_graph.hpp"
#include "graphs/ir/operands.hpp"
#include "tests/failure.hpp"

using namespace ftax;

namespace {

/// A graph of input x f32[batch,4,6], weights and one operator, whose sizes are checked.
Graph graph_of(const std::string& weights, const std::string& op) {
    Graph graph = parse_text_graph("graph g\ninput %x f32[batch,4,6]\n" + weights + op + " : node\noutput %y\n");
    find_size_checks(graph);
    return graph;
}

}  // namespace

TEST_CASE("an operator whose constants fit one batch only is refused by name at any other") {
    const Graph graphs[] = {
        graph_of("", "%y f32[2,24] = reshape(%x)"),
        graph_of("", "%y f32[2,4,6] = expand(%x)"),
        graph_of("weight %w f32[2,4,6]\n", "%y f32[2,4,6] = pointwise(%x, %w) {function=\"add\"}"),
        graph_of("weight %w f32[2,6,5]\n", "%y f32[2,4,5] = matmul(%x, %w)"),
        graph_of("weight %w f32[2,4,5]\n", "%y f32[2,6,5] = matmul(%x, %w) {transpose_a=1}"),
        graph_of("weight %w f32[2,5,6]\n", "%y f32[2,4,5] = matmul(%x, %w) {transpose_b=1}"),
        graph_of("weight %w f32[2,3,6]\n", "%y f32[2,7,6] = concat(%x, %w) {axis=1}"),
    };
    for (const Graph& graph : graphs) {
        CHECK_NOTHROW(static_cast<void>(bind(graph, {{"batch", 2}})));
        const test::Failure failure = test::failure_of([&] { return bind(graph, {{"batch", 8}}); });
        CHECK(failure.code == ErrorCode::model);
        CHECK_MESSAGE(failure.says("node"), failure.message);
    }
}

TEST_CASE("sizes that are always equal need no check, and broadcast sizes pass") {
    CHECK(graph_of("", "%y f32[4*batch,6] = reshape(%x)").size_checks.empty());
    CHECK(graph_of("", "%y f32[6,4,batch] = reshape(%x)").size_checks.empty());
    CHECK(graph_of("weight %w f32[1,1,6]\n", "%y f32[batch,4,6] = pointwise(%x, %w) {function=\"mul\"}")
              .size_checks.empty());
    CHECK(graph_of("weight %w f32[6,5]\n", "%y f32[batch,4,5] = matmul(%x, %w)").size_checks.empty());
    CHECK(graph_of("weight %w f32[4,5]\n", "%y f32[batch,6,5] = matmul(%x, %w) {transpose_a=1}").size_checks.empty());
    CHECK(graph_of("weight %w f32[5,6]\n", "%y f32[batch,4,5] = matmul(%x, %w) {transpose_b=1}").size_checks.empty());
    CHECK(graph_of("weight %w f32[3,6]\n", "%y f32[batch,4,3] = linear(%x, %w)").size_checks.empty());
    // A rotary embedding's table is not broadcast.
    CHECK(graph_of("weight %w f32[9,3]\n", "%y f32[batch,4,6] = pointwise(%x, %w) {function=\"rotary_embedding\"}")
              .size_checks.empty());
}

TEST_CASE("a product whose summed sizes hold for one length only is refused at another") {
    for (const char* op : {"%y f32[n,5] = matmul(%x, %w)", "%y f32[n,5] = matmul(%t, %w) {transpose_a=1}"}) {
        Graph graph =
            parse_text_graph(std::string("graph g\ninput %x f32[n,k]\ninput %t f32[k,n]\nweight %w f32[7,5]\n") + op +
                             " : node\noutput %y\n");
        find_size_checks(graph);
        CHECK_NOTHROW(static_cast<void>(bind(graph, {{"n", 3}, {"k", 7}})));
        CHECK(test::failure_of([&] { return bind(graph, {{"n", 7}, {"k", 3}}); }).says("node"));
    }
}

TEST_CASE("a mask of one row is the same for every query") {
    const Graph graph = parse_text_graph(
        "graph g\ninput %x f32[batch,4,seq,6]\ninput %row f32[batch,1,1,seq]\ninput %square f32[1,1,seq,seq]\n"
        "input %vector f32[seq]\ninput %fixed f32[7,7]\n");
    const auto differs = [&](const char* name) {
        const auto found = std::ranges::find(graph.tensors, name, &Tensor::name);
        return differs_between_queries(graph, static_cast<TensorId>(found - graph.tensors.begin()));
    };
    CHECK_FALSE(differs("row"));
    CHECK_FALSE(differs("vector"));
    CHECK(differs("square"));
    CHECK(differs("fixed"));
}
