#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "predictors/lowering/rewrites.hpp"

// What reaches ONNX Runtime of a graph that PyTorch dispatches.

using namespace ftax;

namespace {

std::vector<OpKind> kinds(const Graph& graph) {
    std::vector<OpKind> result;
    for (const Op& op : graph.ops) result.push_back(op.kind);
    return result;
}

std::int64_t flops(const Graph& graph, OpKind kind, const ShapeBindings& bindings) {
    const BoundShapes bound = ftax::bind(graph, bindings);
    std::int64_t sum = 0;
    for (const Op& op : graph.ops) {
        if (op.kind == kind) sum += work_of(graph, op, bound).flops;
    }
    return sum;
}

}  // namespace

TEST_CASE("what yields its input has no node: readers take the input itself") {
    Graph graph = parse_text_graph(R"(
input %x f32[batch,8,4]
%a f32[batch,8,4] = identity(%x) "aten::dropout"
%b f32[batch,8,4] = slice(%a) {axes=[1] step=[1]} "aten::slice"
%c f32[batch,8,4] = copy(%b) "aten::contiguous"
%k f32[batch,8,4] = copy(%c) "aten::clone"
%d f32[batch,8,4] = copy(%k) "aten::flip"
%e f32[batch,8,4] = concat(%d) {axis=1} "aten::cat"
%y f32[batch,2,4] = slice(%e) {axes=[1] step=[1]} "aten::slice"
output %y
)");
    rewrites::remove_copies(graph);
    REQUIRE(kinds(graph) == std::vector{OpKind::copy, OpKind::slice});  // the flip, and the slice of a part
    CHECK(graph.ops[0].inputs == graph.inputs);
    CHECK(graph.ops[1].inputs == graph.ops[0].outputs);
}

TEST_CASE("empty parts of a concatenation are left out, and of one part no concatenation is left") {
    Graph graph = parse_text_graph(R"(
input %x f32[batch,8,4]
weight %nothing f32[0]
weight %none f32[batch,0,4]
%a f32[batch,8,4] = concat(%nothing, %x) {axis=1} "aten::cat"
%b f32[batch,16,4] = concat(%none, %a, %x) {axis=1} "aten::cat"
%c f32[0] = concat(%nothing, %nothing) {axis=0} "aten::cat"
output %b
output %c
)");
    rewrites::remove_copies(graph);
    REQUIRE(kinds(graph) == std::vector{OpKind::concat, OpKind::concat});
    CHECK(graph.ops[0].inputs == std::vector{graph.inputs[0], graph.inputs[0]});
}

TEST_CASE("constants fold where their size is fixed, random numbers and free sizes do not") {
    Graph graph = parse_text_graph(R"(
input %x f32[batch,8]
weight %table f32[16,8]
%zeros f32[8] = fill(%x) "aten::new_zeros"
%picked f32[8] = slice(%table) {axes=[0] step=[1]} "aten::select"
%mask f32[8] = pointwise(%zeros, %picked) {function="add"} "aten::add"
%noise f32[8] = fill() "aten::rand"
%free f32[batch,8] = fill() "aten::zeros"
%a f32[batch,8] = pointwise(%x, %mask) {function="add"} "aten::add"
%b f32[batch,8] = pointwise(%a, %noise) {function="add"} "aten::add"
%y f32[batch,8] = pointwise(%b, %free) {function="add"} "aten::add"
output %y
)");
    rewrites::fold_constants(graph);
    using enum OpKind;
    CHECK(kinds(graph) == std::vector{fill, fill, pointwise, pointwise, pointwise});
    CHECK(graph.tensors[graph.ops[2].inputs[1]].role == TensorRole::weight);
}

TEST_CASE("attention is written out with the work it had, an operator of the ONNX file stays") {
    const std::string text = R"(
input %q f32[batch,4,7,16]
input %k f32[batch,4,9,16]
input %v f32[batch,4,9,16]
%y f32[batch,4,7,16] = attention(%q, %k, %v) {causal=0} "aten::scaled_dot_product_attention"
output %y
)";
    Graph graph = parse_text_graph(text);
    rewrites::write_out_attention(graph);
    using enum OpKind;
    CHECK(kinds(graph) == std::vector{transpose, pointwise, pointwise, matmul, softmax, matmul});
    CHECK(flops(graph, matmul, {{"batch", 3}}) == 2 * (2 * 3 * 4 * 7 * 9 * 16));
    CHECK(graph.ops.back().outputs == graph.outputs);

    Graph from_file = parse_text_graph(text);
    from_file.format = "onnx";
    from_file.ops[0].source = "com.microsoft::MultiHeadAttention";
    rewrites::write_out_attention(from_file);
    CHECK(kinds(from_file) == std::vector{attention});
}

TEST_CASE("a group norm is written out as ONNX writes it, an operator of the ONNX file stays") {
    const auto graph_of = [](const std::string& source) {
        return parse_text_graph(
            "input %x f32[batch,8,6,6]\nweight %w f32[8]\nweight %b f32[8]\n"
            "%y f32[batch,8,6,6] = group_norm(%x, %w, %b) {groups=2} \"" +
            source + "\"\noutput %y\n");
    };
    Graph graph = graph_of("aten::group_norm");
    rewrites::write_out_group_norm(graph);
    using enum OpKind;
    REQUIRE(kinds(graph) == std::vector{reshape, instance_norm, reshape, pointwise, pointwise});
    CHECK(graph.tensors[graph.ops[1].inputs[0]].shape[1] == graph.expressions.constant(2));
    CHECK(graph.tensors[graph.ops[1].inputs[0]].shape[2] == graph.expressions.constant(4 * 6 * 6));
    CHECK(graph.ops.back().outputs == graph.outputs);

    Graph own = graph_of("com.microsoft::GroupNorm");
    rewrites::write_out_group_norm(own);
    CHECK(kinds(own) == std::vector{group_norm});
}

TEST_CASE("chunks become slices, a roll two slices and a concatenation per dimension") {
    Graph graph = parse_text_graph(R"(
input %x f32[batch,8,6]
%a f32[batch,4,6], %b f32[batch,4,6] = split(%x) {axis=1} "aten::chunk"
%c f32[batch,4,6] = pointwise(%a, %b) {function="add"} "aten::add"
%y f32[batch,4,6] = copy(%c) {axes=[1,2] shifts=[-1,2]} "aten::roll"
output %y
)");
    rewrites::write_out_movement(graph);
    using enum OpKind;
    REQUIRE(kinds(graph) == std::vector{slice, slice, pointwise, slice, slice, concat, slice, slice, concat});
    const auto size = [&](OpId op, std::size_t axis) {
        return graph.expressions.to_string(graph.tensors[graph.ops[op].outputs[0]].shape[axis]);
    };
    CHECK(size(3, 1) == "3");  // rolled back by one: the last three come first
    CHECK(size(4, 1) == "1");
    CHECK(size(6, 2) == "2");
    CHECK(graph.ops.back().outputs == graph.outputs);
}

TEST_CASE("a com.microsoft node moves packed queries, keys and values in one kernel and is one dispatch") {
    Graph graph = parse_text_graph(R"(
input %x f16[2,128,768]
weight %w f16[2304,768]
%p f16[2,128,2304] = linear(%x, %w) "com.microsoft::Attention"
%a f16[2,128,768] = slice(%p) {axes=[2] step=[1]} "com.microsoft::Attention"
%b f16[2,128,768] = slice(%p) {axes=[2] step=[1]} "com.microsoft::Attention"
%c f16[2,128,12,64] = reshape(%a) "com.microsoft::Attention"
%d f16[2,12,128,64] = transpose(%c) {perm=[0,2,1,3]} "com.microsoft::Attention"
%e f16[2,128,12,64] = reshape(%b) "com.microsoft::Attention"
%f f16[2,12,128,64] = transpose(%e) {perm=[0,2,1,3]} "com.microsoft::Attention"
%g f16[2,12,128,64] = attention(%d, %f, %f) "com.microsoft::Attention"
%h f16[2,128,12,64] = transpose(%g) {perm=[0,2,1,3]} "com.microsoft::Attention"
%y f16[2,128,768] = reshape(%h) "com.microsoft::Attention"
output %y
)");
    graph.format = "onnx";
    for (Op& op : graph.ops) op.name = "/layer/Attention" + (op.kind == OpKind::linear ? "" : "/" + op.name);
    rewrites::join_movement_of_nodes(graph);
    CHECK(kinds(graph) == std::vector{OpKind::linear, OpKind::copy, OpKind::attention, OpKind::copy});
    CHECK(graph.ops[1].inputs.size() == 1);
    CHECK(graph.ops[1].outputs.size() == 2);

    const PredictOptions half{.precision = Precision::fp16};
    const auto predicted = [&](const char* framework, const char* device) {
        return Predictor(graph, device_profile(device), {.framework = framework}, half).explain({});
    };
    const Explanation turing = predicted("onnxruntime-cuda", "t4"),
                      volta = predicted("onnxruntime-cuda", "v100-pcie-16gb");
    CHECK(turing.launches.size() == 2);  // the run and one node
    CHECK(turing.prediction.kernels == 4);
    CHECK(volta.launches.size() == 2);
    CHECK(volta.prediction.kernels == 6);  // two products and a softmax
}
