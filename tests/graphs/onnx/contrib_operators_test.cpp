#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "ftax/error.hpp"
#include "ftax/work.hpp"
#include "tests/graphs/onnx/model_files.hpp"

// Operators that ONNX Runtime's optimiser writes and that newer opsets have: libonnx-testdata holds no models of them.
// What is expected was worked out by hand from ONNX Runtime's docs/ContribOperators.md and ONNX's docs/Operators.md.

using namespace ftax;
using namespace ftax::test;

namespace {

using Strings = std::vector<std::string>;

/// A model of one node of `op` ("Domain::Name"), whose inputs are declared or weights that the caller added.
struct NodeModel {
    OnnxModel model{23};
    ::onnx::NodeProto* node = nullptr;

    NodeModel(const std::string& op, const Strings& inputs, const Strings& outputs) {
        const std::size_t colons = op.find("::");
        const bool contributed = colons != std::string::npos;
        node = &model.node(contributed ? op.substr(colons + 2) : op, inputs, outputs);
        if (contributed) {
            node->set_domain(op.substr(0, colons));
            auto* imported = model.proto.add_opset_import();
            imported->set_domain(op.substr(0, colons));
            imported->set_version(1);
        }
        for (const std::string& output : outputs) model.output(output);
    }
    NodeModel& set(const std::string& name, std::int64_t value) {
        OnnxModel::attribute(*node, name, value);
        return *this;
    }
    NodeModel& set(const std::string& name, const std::vector<std::int64_t>& values) {
        OnnxModel::attribute(*node, name, values);
        return *this;
    }
    NodeModel& input(const std::string& name, const Strings& dims, int type = ::onnx::TensorProto::FLOAT) {
        model.input(name, dims, type);
        return *this;
    }
    NodeModel& weight(const std::string& name, const std::vector<std::int64_t>& dims,
                      int type = ::onnx::TensorProto::FLOAT) {
        model.weight(name, dims, type);
        return *this;
    }
};

std::string typed(const Graph& graph, TensorId id) {
    const Tensor& tensor = graph.tensors[id];
    Strings dims;
    for (const Expression dim : tensor.shape) dims.push_back(graph.expressions.to_string(dim));
    return fmt::format("{}[{}]", name_of(tensor.dtype), fmt::join(dims, ","));
}

/// "kind type, kind type, …" of every operator and its first result.
Strings stream(const NodeModel& node) {
    const Graph graph = node.model.import();
    Strings result;
    for (const Op& op : graph.ops)
        result.push_back(fmt::format("{} {}", name_of(op.kind), typed(graph, op.outputs[0])));
    return result;
}

/// Types of the graph's outputs.
Strings outputs(const NodeModel& node) {
    const Graph graph = node.model.import();
    Strings result;
    for (const TensorId output : graph.outputs) result.push_back(typed(graph, output));
    return result;
}

std::string refusal(const NodeModel& node) {
    const auto failure = failure_of([&] { return node.model.import(); });
    REQUIRE(failure);
    CHECK(failure.code == ErrorCode::model);
    return failure.message;
}

}  // namespace

TEST_CASE("com.microsoft::Attention is a projection, three cuts into heads and one fused attention") {
    NodeModel packed("com.microsoft::Attention", {"x", "w", "b"}, {"y"});
    packed.set("num_heads", 4).input("x", {"batch", "16", "64"}).weight("w", {64, 192}).weight("b", {192});
    CHECK(stream(packed) == Strings{"linear f32[batch,16,192]", "slice f32[batch,16,64]", "slice f32[batch,16,64]",
                                    "slice f32[batch,16,64]", "reshape f32[batch,16,4,16]",
                                    "transpose f32[batch,4,16,16]", "reshape f32[batch,16,4,16]",
                                    "transpose f32[batch,4,16,16]", "reshape f32[batch,16,4,16]",
                                    "transpose f32[batch,4,16,16]", "attention f32[batch,4,16,16]",
                                    "transpose f32[batch,16,4,16]", "reshape f32[batch,16,64]"});
    CHECK(outputs(packed) == Strings{"f32[batch,16,64]"});

    NodeModel uneven("com.microsoft::Attention", {"x", "w"}, {"y", "present"});
    uneven.set("num_heads", 4).set("qkv_hidden_sizes", {64, 64, 128}).set("unidirectional", 1);
    uneven.input("x", {"2", "16", "64"}).weight("w", {64, 256});
    CHECK(outputs(uneven)[0] == "f32[2,16,128]");
    const Graph graph = uneven.model.import();
    for (const Op& op : graph.ops) CHECK((op.kind != OpKind::attention || op.integer("causal", 0) == 1));

    NodeModel flat("com.microsoft::Attention", {"x", "w"}, {"y"});
    flat.set("num_heads", 4).input("x", {"16", "64"}).weight("w", {64, 192});
    CHECK(refusal(flat).ends_with("input must have rank 3 and weights rank 2"));
    NodeModel headless("com.microsoft::Attention", {"x", "w"}, {"y"});
    headless.set("num_heads", 0).input("x", {"2", "16", "64"}).weight("w", {64, 192});
    CHECK(refusal(headless).ends_with("num_heads 0"));
}

TEST_CASE("com.microsoft::MultiHeadAttention appends to the cache that it is given") {
    NodeModel cached("com.microsoft::MultiHeadAttention", {"q", "k", "v", "", "", "", "past_k", "past_v"},
                     {"y", "present_k", "present_v"});
    cached.set("num_heads", 4);
    for (const char* name : {"q", "k", "v"}) cached.input(name, {"batch", "1", "64"});
    for (const char* name : {"past_k", "past_v"}) cached.input(name, {"batch", "4", "past", "16"});
    CHECK(outputs(cached) == Strings{"f32[batch,1,64]", "f32[batch,4,past+1,16]", "f32[batch,4,past+1,16]"});
    const Strings operators = stream(cached);
    CHECK(std::count(operators.begin(), operators.end(), "concat f32[batch,4,past+1,16]") == 2);
    CHECK(std::count(operators.begin(), operators.end(), "attention f32[batch,4,1,16]") == 1);

    NodeModel crossed("com.microsoft::MultiHeadAttention", {"q", "k", "v"}, {"y"});
    crossed.set("num_heads", 4).input("q", {"2", "5", "64"});
    for (const char* name : {"k", "v"}) crossed.input(name, {"2", "4", "7", "16"});
    CHECK(outputs(crossed) == Strings{"f32[2,5,64]"});

    NodeModel packed("com.microsoft::MultiHeadAttention", {"q"}, {"y"});
    packed.set("num_heads", 4).input("q", {"2", "5", "4", "3", "16"});
    CHECK(outputs(packed) == Strings{"f32[2,5,64]"});
    const Strings cut = stream(packed);
    CHECK(std::count(cut.begin(), cut.end(), "attention f32[2,4,5,16]") == 1);
    NodeModel keys("com.microsoft::MultiHeadAttention", {"q", "kv"}, {"y"});
    keys.set("num_heads", 4).input("q", {"2", "5", "64"}).input("kv", {"2", "7", "4", "2", "16"});
    CHECK(outputs(keys) == Strings{"f32[2,5,64]"});
    NodeModel halves("com.microsoft::MultiHeadAttention", {"q"}, {"y"});
    halves.set("num_heads", 4).input("q", {"2", "5", "4", "2", "16"});
    CHECK(refusal(halves).ends_with("dimension 3 of a packed operand must be 3"));
    NodeModel uneven("com.microsoft::MultiHeadAttention", {"q", "k", "v"}, {"y"});
    uneven.set("num_heads", 4).input("q", {"2", "5", "64"}).input("k", {"2", "64"}).input("v", {"2", "64"});
    CHECK(refusal(uneven).ends_with("key and value must have rank 3 or 4"));
}

TEST_CASE("com.microsoft::GroupQueryAttention has fewer heads of keys, packed or apart") {
    NodeModel packed("com.microsoft::GroupQueryAttention", {"qkv", "", "", "past_k", "past_v"},
                     {"y", "present_k", "present_v"});
    packed.set("num_heads", 8).set("kv_num_heads", 2).input("qkv", {"batch", "1", "192"});
    for (const char* name : {"past_k", "past_v"}) packed.input(name, {"batch", "2", "31", "16"});
    CHECK(outputs(packed) == Strings{"f32[batch,1,128]", "f32[batch,2,32,16]", "f32[batch,2,32,16]"});
    CHECK(stream(packed)[0] == "slice f32[batch,1,128]");
    CHECK(stream(packed)[1] == "slice f32[batch,1,32]");

    NodeModel apart("com.microsoft::GroupQueryAttention", {"q", "k", "v"}, {"y"});
    apart.set("num_heads", 8).set("kv_num_heads", 2).input("q", {"2", "5", "128"});
    for (const char* name : {"k", "v"}) apart.input(name, {"2", "5", "32"});
    CHECK(outputs(apart) == Strings{"f32[2,5,128]"});

    NodeModel flat("com.microsoft::GroupQueryAttention", {"q", "k", "v"}, {"y"});
    flat.set("num_heads", 8).set("kv_num_heads", 2).input("q", {"2", "5", "128"});
    for (const char* name : {"k", "v"}) flat.input(name, {"5", "32"});
    CHECK(refusal(flat).ends_with("key and value must have rank 3"));
    NodeModel scalar("com.microsoft::GroupQueryAttention", {"q"}, {"y"});
    scalar.set("num_heads", 8).set("kv_num_heads", 2).input("q", {"128"});
    CHECK(refusal(scalar).ends_with("query must have rank 3"));
}

TEST_CASE("Attention of opset 23 takes heads apart or merged") {
    NodeModel apart("Attention", {"q", "k", "v"}, {"y"});
    for (const char* name : {"q", "k", "v"}) apart.input(name, {"batch", "4", "seq", "16"});
    CHECK(stream(apart) == Strings{"attention f32[batch,4,seq,16]"});

    NodeModel merged("Attention", {"q", "k", "v", "mask", "past_k", "past_v"}, {"y", "present_k", "present_v"});
    merged.set("q_num_heads", 4).set("kv_num_heads", 2).set("is_causal", 1);
    merged.input("q", {"2", "5", "64"})
        .input("k", {"2", "5", "32"})
        .input("v", {"2", "5", "32"})
        .input("mask", {"5", "9"});
    for (const char* name : {"past_k", "past_v"}) merged.input(name, {"2", "2", "4", "16"});
    CHECK(outputs(merged) == Strings{"f32[2,5,64]", "f32[2,2,9,16]", "f32[2,2,9,16]"});

    NodeModel mixed("Attention", {"q", "k", "v"}, {"y"});
    mixed.input("q", {"2", "4", "5", "16"}).input("k", {"2", "5", "64"}).input("v", {"2", "5", "64"});
    CHECK(refusal(mixed).ends_with("Q, K and V differ in rank"));
    NodeModel flat("Attention", {"q", "k", "v"}, {"y"});
    for (const char* name : {"q", "k", "v"}) flat.input(name, {"5", "64"});
    CHECK(refusal(flat).ends_with("Q must have rank 3 or 4"));
}

TEST_CASE("what ONNX Runtime fuses around a transformer's layers keeps the shape of its first input") {
    NodeModel norm("com.microsoft::SkipLayerNormalization", {"x", "skip", "gamma"}, {"y", "mean", "inverse", "sum"});
    norm.weight("gamma", {64}).input("x", {"batch", "16", "64"}).input("skip", {"batch", "16", "64"});
    CHECK(outputs(norm) == Strings{"f32[batch,16,64]", "f32[batch,16,1]", "f32[batch,16,1]", "f32[batch,16,64]"});
    CHECK(stream(norm) == Strings{"layer_norm f32[batch,16,64]"});

    NodeModel gelu("com.microsoft::BiasGelu", {"x", "b"}, {"y"});
    gelu.weight("b", {64}).input("x", {"batch", "16", "64"});
    CHECK(stream(gelu) == Strings{"pointwise f32[batch,16,64]"});
    NodeModel split("com.microsoft::BiasSplitGelu", {"x", "b"}, {"y"});
    split.weight("b", {64}).input("x", {"batch", "16", "64"});
    CHECK(outputs(split) == Strings{"f32[batch,16,32]"});
    NodeModel softmax("com.microsoft::BiasSoftmax", {"x", "b"}, {"y"});
    softmax.set("axis", -1)
        .set("is_inner_broadcast", 0)
        .input("x", {"batch", "16", "16"})
        .input("b", {"1", "16", "16"});
    CHECK(stream(softmax) == Strings{"softmax f32[batch,16,16]"});
    NodeModel rotary("com.microsoft::RotaryEmbedding", {"x", "at", "cos", "sin"}, {"y"});
    rotary.input("x", {"2", "5", "64"}).input("at", {"2", "5"}, ::onnx::TensorProto::INT64);
    rotary.weight("cos", {9, 8}).weight("sin", {9, 8});
    CHECK(outputs(rotary) == Strings{"f32[2,5,64]"});

    for (const char* op : {"com.microsoft::SkipLayerNormalization", "com.microsoft::BiasSplitGelu"}) {
        NodeModel scalar(op, {"x", "x", "x"}, {"y"});
        scalar.input("x", {});
        CHECK(refusal(scalar).ends_with("input is a scalar"));
    }
    NodeModel flat("com.microsoft::RotaryEmbedding", {"x", "at", "cos", "sin"}, {"y"});
    flat.input("x", {"64"}).input("at", {"1"}, ::onnx::TensorProto::INT64).weight("cos", {9, 8}).weight("sin", {9, 8});
    CHECK(refusal(flat).ends_with("input must have rank 3 or 4"));
}

TEST_CASE("quantized operators of ONNX Runtime read the tensors, not their scales") {
    const int u8 = ::onnx::TensorProto::UINT8;
    NodeModel sum("com.microsoft::QLinearAdd", {"a", "as", "az", "b", "bs", "bz", "ys", "yz"}, {"y"});
    sum.input("a", {"batch", "8", "1"}, u8).input("b", {"4"}, u8);
    for (const char* scale : {"as", "bs", "ys"}) sum.weight(scale, {});
    for (const char* zero : {"az", "bz", "yz"}) sum.weight(zero, {}, u8);
    CHECK(stream(sum) == Strings{"pointwise u8[batch,8,4]"});
    CHECK(sum.model.import().ops[0].inputs.size() == 2);

    NodeModel sigmoid("com.microsoft::QLinearSigmoid", {"a", "as", "az", "ys", "yz"}, {"y"});
    sigmoid.input("a", {"batch", "8"}, u8).weight("as", {}).weight("az", {}, u8).weight("ys", {}).weight("yz", {}, u8);
    CHECK(stream(sigmoid) == Strings{"pointwise u8[batch,8]"});
    CHECK(sigmoid.model.import().ops[0].inputs.size() == 1);

    NodeModel nbits("com.microsoft::MatMulNBits", {"a", "b", "scales"}, {"y"});
    nbits.set("K", 64).set("N", 32).set("bits", 4).set("block_size", 16);
    nbits.input("a", {"batch", "64"}).weight("b", {32, 4, 8}, u8).weight("scales", {128});
    CHECK(stream(nbits) == Strings{"linear f32[batch,32]"});
    const Graph graph = nbits.model.import();
    CHECK(typed(graph, graph.ops[0].inputs[1]) == "u4[32,64]");
}

TEST_CASE("com.microsoft::NhwcConv has its channels last, and its filter's where ONNX Runtime runs it on the GPU") {
    for (const auto& filter : {std::vector<std::int64_t>{320, 320, 3, 3}, std::vector<std::int64_t>{320, 3, 3, 320}}) {
        NodeModel conv("com.microsoft::NhwcConv", {"x", "w", "b"}, {"y"});
        conv.set("pads", {1, 1, 1, 1}).input("x", {"2", "64", "64", "320"}).weight("w", filter).weight("b", {320});
        CHECK(stream(conv) == Strings{"reshape f32[2,320,64,64]", "conv f32[2,320,64,64]", "reshape f32[2,64,64,320]"});
        const Graph graph = conv.model.import();
        CHECK(total_work(graph, ftax::bind(graph, {})).flops == 2 * std::int64_t{2 * 64 * 64} * 320 * 320 * 9);
    }
    NodeModel fused("com.microsoft::NhwcFusedConv", {"x", "w"}, {"y"});
    fused.set("strides", {2, 2}).set("group", 8).input("x", {"batch", "9", "9", "8"}).weight("w", {16, 1, 3, 3});
    CHECK(outputs(fused) == Strings{"f32[batch,4,4,16]"});
}
