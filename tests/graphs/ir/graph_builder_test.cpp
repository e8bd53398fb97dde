#include "ftax/graph_builder.hpp"

#include <doctest/doctest.h>

#include "ftax/error.hpp"

using namespace ftax;

namespace {

std::vector<std::string> shape_of(GraphBuilder& net, TensorId id) {
    std::vector<std::string> result;
    for (const Expression dim : net.shape(id)) result.push_back(net.graph().expressions.to_string(dim));
    return result;
}

using Shape = std::vector<std::string>;

template <class Call>
std::string message_of(Call call) {
    try {
        call();
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::model);
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("windows shrink images as PyTorch's do") {
    GraphBuilder net("net");
    const TensorId x = net.input("x", {"batch", "3", "224", "width"});
    const TensorId stem = net.conv(x, 64, {.kernel = 7, .stride = 2, .pad = 3});
    CHECK(net.shape(stem)[2] == net.graph().expressions.constant(112));
    BoundShapes bound = bind(net.graph(), {{"batch", 4}, {"width", 225}});
    CHECK(bound[net.shape(stem)[0]] == 4);
    CHECK(bound[net.shape(stem)[3]] == 113);
    const TensorId pooled = net.max_pool(stem, {.kernel = 3, .stride = 2, .pad = 1});
    CHECK(shape_of(net, pooled)[2] == "56");
    const TensorId dilated = net.conv(pooled, 64, {.kernel = 3, .dilation = 2, .groups = 32});
    CHECK(shape_of(net, dilated)[2] == "52");
    const Op& op = net.graph().ops.back();
    CHECK(op.integer("groups", 0) == 32);
    CHECK(shape_of(net, op.inputs[1]) == Shape{"64", "2", "3", "3"});
    CHECK(shape_of(net, net.global_average_pool(dilated)) == Shape{"batch", "64", "1", "1"});
}

TEST_CASE("sequence models keep their symbols") {
    GraphBuilder net("net");
    const TensorId ids = net.input("ids", {"batch", "seq"}, DType::i64);
    const TensorId tokens = net.layer_norm(net.embedding(ids, 30522, 768));
    CHECK(shape_of(net, tokens) == Shape{"batch", "seq", "768"});
    const TensorId query = net.linear(tokens, 768);
    const TensorId heads = net.transpose(net.reshape(query, {"batch", "seq", "12", "64"}), {0, 2, 1, 3});
    const TensorId keys = net.transpose(heads, {0, 1, 3, 2});
    const TensorId scores = net.softmax(net.matmul(heads, keys));
    CHECK(shape_of(net, scores) == Shape{"batch", "12", "seq", "seq"});
    const TensorId context = net.transpose(net.matmul(scores, heads), {0, 2, 1, 3});
    const TensorId merged = net.reshape(context, {"batch", "seq", "-1"});
    CHECK(shape_of(net, merged) == Shape{"batch", "seq", "768"});
    CHECK(shape_of(net, net.concat({merged, tokens}, 1)) == Shape{"batch", "2*seq", "768"});
    CHECK(shape_of(net, net.add(scores, net.weight("mask", {"1", "1", "1", "seq"}))) ==
          Shape{"batch", "12", "seq", "seq"});
}

TEST_CASE("a layer records its module call, a function does not") {
    GraphBuilder net("net");
    const TensorId x = net.input("x", {"batch", "8", "4", "4"});
    net.add(net.relu(net.conv(x, 8)), x);
    const Graph graph = net.finish({});
    REQUIRE(graph.module_calls.size() == 3);
    CHECK(graph.module_calls[0].path.empty());
    CHECK(graph.module_calls[1].type == "torch.nn.modules.conv.Conv2d");
    CHECK(graph.ops[0].module == graph.module_calls[1].path);
    CHECK(graph.module_calls[2].type == "torch.nn.modules.activation.ReLU");
    CHECK(graph.ops[2].module.empty());
    CHECK(net.graph().ops.empty());
}

TEST_CASE("BAD_INPUTS 14, 21: what does not fit names the operator") {
    GraphBuilder net("net");
    const TensorId x = net.input("x", {"batch", "6", "8", "8"});
    const TensorId y = net.input("y", {"n", "6", "8", "8"});
    CHECK(message_of([&] { net.conv(x, 8, {.groups = 4}); }) ==
          "net: conv_0: 4 groups do not divide 6 input and 8 output channels");
    CHECK(message_of([&] { net.conv(x, 8, {.kernel = 0}); }).find("net: conv_0: kernel 0") == 0);
    CHECK(message_of([&] { net.conv(x, 8, {.stride = 0}); }).find("stride 0") != std::string::npos);
    CHECK(message_of([&] { net.conv(x, 8, {.kernel = 9}); }) == "net: conv_0: kernel 9 does not fit into 8 with pad 0");
    CHECK(message_of([&] { net.conv(x, 8, {.groups = 0}); }) != "");
    CHECK(message_of([&] { net.softmax(x, 4); }) == "net: softmax_0: axis 4 of 4 dimensions");
    CHECK(message_of([&] {
              net.transpose(x, {0, 1, 1, 2});
          }) == "net: transpose_0: [0,1,1,2] is not a permutation of 4 axes");
    CHECK(message_of([&] { net.transpose(x, {0, 1}); }) != "");
    CHECK(message_of([&] { net.add(x, y); }) == "net: add_0: [batch,6,8,8] and [n,6,8,8] do not broadcast");
    CHECK(message_of([&] {
              net.concat({x, y}, 1);
          }) == "net: concat_0: [batch,6,8,8] and [n,6,8,8] differ outside of axis 1");
    CHECK(message_of([&] { net.reshape(x, {"batch", "-1", "-1"}); }) == "net: reshape_0: two dimensions are -1");
    CHECK(message_of([&] {
              net.reshape(x, {"batch", "383"});
          }) == "net: reshape_0: [batch,6,8,8] and [batch,383] differ in size");
    CHECK(message_of([&] { net.matmul(x, net.weight("w", {"7", "2"})); }).find("net: matmul_0: inner dimensions") == 0);
    CHECK(message_of([&] { net.embedding(x, 10, 4); }) == "net: embedding_0: indices must be integers");
    CHECK(message_of([&] { net.relu(static_cast<TensorId>(net.graph().tensors.size())); }) ==
          "net: relu_0: an input is not a tensor of this graph");
    CHECK(net.graph().ops.empty());
}

TEST_CASE("a number of an integer and a float is a float, in either order") {
    GraphBuilder net("net");
    const TensorId whole = net.input("i", {"batch"}, DType::i64), half = net.input("f", {"batch"}, DType::f16);
    const auto type = [&](TensorId id) { return net.graph().tensors[id].dtype; };
    CHECK(type(net.add(whole, half)) == DType::f16);
    CHECK(type(net.add(half, whole)) == DType::f16);
    CHECK(type(net.add(whole, whole)) == DType::i64);
}
