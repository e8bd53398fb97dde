#include "graphs/ir/strides.hpp"

#include <doctest/doctest.h>

#include <string>

#include "ftax/text_graph.hpp"

using namespace ftax;

namespace {

std::string strides(const Graph& graph, const std::string& name) {
    std::string text;
    for (const Tensor& tensor : graph.tensors) {
        if (tensor.name != name) continue;
        for (const Expression e : tensor.strides) text += (text.empty() ? "" : ",") + graph.expressions.to_string(e);
    }
    return text;
}

/// A layer norm over channels leaves NHWC data behind a permuted view, which the convolution after it keeps.
constexpr const char* channel_norm = R"(graph channel_norm
input %x f32[batch,8,4,4]
weight %w f32[8,8,1,1]
weight %g f32[8]
%a f32[batch,4,4,8] = transpose(%x) {perm=[0,2,3,1]}
%n f32[batch,4,4,8] = layer_norm(%a,%g) {axis=3}
%b f32[batch,8,4,4] = transpose(%n) {perm=[0,3,1,2]}
%c f32[batch,8,4,4] = conv(%b,%w)
%r f32[batch,8,4,4] = pointwise(%c) {function="relu"}
%f f32[batch,128] = reshape(%r)
output %f
)";

}  // namespace

TEST_CASE("a view steps over what it leaves out") {
    const std::pair<const char*, const char*> views[] = {
        {"%v f32[4,3,8] = slice(%x) {axes=[1] step=[2]}", "48,16,1"},
        {"%v f32[4,6,3] = slice(%x) {axes=[2] step=[3]}", "48,8,3"},
        {"%v f32[2,3,8] = slice(%x) {axes=[0,1] step=[2,2]}", "96,16,1"},
        {"%v f32[4,4,8] = slice(%x) {axes=[1] step=[1]}", "48,8,1"},
        {"%v f32[4,8] = slice(%x) {axes=[1]}", "48,1"},
        {"%v f32[8,4,6] = transpose(%x) {perm=[2,0,1]}", "1,48,8"},
        {"%v f32[4,2,8], %w f32[4,4,8] = split(%x) {axis=1}", "48,8,1"},
        {"%v f32[6,8], %w f32[6,8], %y f32[6,8], %z f32[6,8] = split(%x) {axis=0}", ""}};
    for (const auto& [view, expected] : views) {
        const std::string text = std::string("graph g\ninput %x f32[4,6,8]\n") + view + "\noutput %v\n";
        CAPTURE(text);
        Graph graph = parse_text_graph(text);
        propagate_strides(graph);
        CHECK(strides(graph, "v") == expected);
    }
}

TEST_CASE("convolutions pass channels-last on") {
    Graph graph = parse_text_graph(channel_norm);
    propagate_strides(graph);
    lay_out_for_cuda(graph, false);
    CHECK(strides(graph, "x") == "");
    CHECK(strides(graph, "b") == "128,1,32,8");
    CHECK(strides(graph, "c") == strides(graph, "b"));
    CHECK(strides(graph, "r") == strides(graph, "b"));
    CHECK(strides(graph, "f") == "");  // needs a copy
}

TEST_CASE("images and filters given as channels-last are channels-last in the whole graph") {
    Graph graph = parse_text_graph(channel_norm);
    propagate_strides(graph);
    lay_out_for_cuda(graph, true);
    CHECK(strides(graph, "x") == "128,1,32,8");
    CHECK(strides(graph, "a") == "");  // the permuted view of NHWC data is row-major
    CHECK(strides(graph, "n") == "");
    CHECK(strides(graph, "c") == "128,1,32,8");
}

TEST_CASE("fused attention writes heads last, so that joining them again is a view") {
    Graph graph = parse_text_graph(R"(graph attention
input %q f32[batch,12,seq,64]
%o f32[batch,12,seq,64] = attention(%q,%q,%q)
%t f32[batch,seq,12,64] = transpose(%o) {perm=[0,2,1,3]}
output %t
)");
    lay_out_for_cuda(graph, false);
    CHECK(strides(graph, "o") == "768*seq,64,768,1");
    CHECK(strides(graph, "t") == "");
}
