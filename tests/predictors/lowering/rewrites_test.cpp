#include "predictors/lowering/rewrites.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ftax/graph_builder.hpp"
#include "ftax/text_graph.hpp"

using namespace ftax;

namespace {

long count(const Graph& graph, OpKind kind) {
    return std::count_if(graph.ops.begin(), graph.ops.end(), [&](const Op& op) { return op.kind == kind; });
}

/// conv-bn-relu-conv-bn + shortcut, relu: the basic block of a ResNet.
Graph residual_block() {
    GraphBuilder net("block");
    const TensorId x = net.input("x", {"batch", "8", "16", "16"});
    TensorId y = net.relu(net.batch_norm(net.conv(x, 8, {.kernel = 3, .pad = 1})));
    y = net.batch_norm(net.conv(y, 8, {.kernel = 3, .pad = 1}));
    return net.finish({net.relu(net.add(y, x))});
}

}  // namespace

TEST_CASE("batch norms fold into convolutions and leave a bias") {
    Graph graph = residual_block();
    rewrites::fold_batch_norm(graph);
    CHECK(count(graph, OpKind::batch_norm) == 0);
    for (const Op& op : graph.ops) {
        if (op.kind == OpKind::conv) CHECK(op.inputs.size() == 3);
    }
}

TEST_CASE("a batch norm whose input is read twice stays") {
    GraphBuilder net("shared");
    const TensorId y = net.conv(net.input("x", {"batch", "8", "4", "4"}), 8);
    Graph graph = net.finish({net.add(net.batch_norm(y), y)});
    rewrites::fold_batch_norm(graph);
    CHECK(count(graph, OpKind::batch_norm) == 1);
}

TEST_CASE("ONNX Runtime's passes leave two convolutions of a residual block") {
    Graph graph = residual_block();
    rewrites::fold_batch_norm(graph);
    rewrites::fuse_conv_relu(graph);
    REQUIRE(graph.ops.size() == 2);
    CHECK(graph.ops[1].inputs.size() == 4);  // x, filter, bias, shortcut
    CHECK(graph.ops[1].outputs == graph.outputs);
}

TEST_CASE("an addition without relu is an epilogue in TensorRT but not in FusedConv") {
    GraphBuilder net("linear bottleneck");
    const TensorId x = net.input("x", {"batch", "8", "4", "4"});
    const Graph source = net.finish({net.add(net.conv(x, 8), x)});
    Graph ort = source;
    rewrites::fuse_conv_relu(ort);
    CHECK(count(ort, OpKind::pointwise) == 1);
    Graph tensorrt = source;
    rewrites::fuse_epilogue(tensorrt);
    CHECK(count(tensorrt, OpKind::pointwise) == 0);
}

TEST_CASE("a run of elementwise operators becomes one that reads and writes only what leaves the run") {
    GraphBuilder net("run");
    const TensorId x = net.input("x", {"batch", "64"});
    const TensorId a = net.relu(x);
    const TensorId b = net.add(a, x);
    const TensorId c = net.pointwise("tanh", {b});
    Graph graph = net.finish({net.softmax(c), b});
    rewrites::fuse_pointwise(graph);
    REQUIRE(graph.ops.size() == 2);
    CHECK(graph.ops[0].text("function") == rewrites::fused_function);
    CHECK(graph.ops[0].inputs == std::vector<TensorId>{x});
    CHECK(graph.ops[0].outputs == std::vector<TensorId>{b, c});
    CHECK(graph.tensors[c].producer == 0);
}

TEST_CASE("a single elementwise operator is not fused") {
    GraphBuilder net("single");
    Graph graph = net.finish({net.softmax(net.relu(net.input("x", {"batch", "64"})))});
    rewrites::fuse_pointwise(graph);
    REQUIRE(graph.ops.size() == 2);
    CHECK(graph.ops[0].text("function") == "relu");
}

TEST_CASE("a residual addition joins the layer norm that alone reads it") {
    GraphBuilder net("post norm");
    const TensorId x = net.input("x", {"batch", "16", "64"});
    Graph graph = net.finish({net.layer_norm(net.add(net.linear(x, 64), x))});
    rewrites::fuse_skip_layer_norm(graph);
    CHECK(graph.ops.size() == 2);
    CHECK(graph.ops.back().inputs.back() == x);
}

TEST_CASE("a part of several concatenations is written into one of them and copied into the others") {
    GraphBuilder net("dense block");
    const TensorId x = net.conv(net.input("x", {"batch", "8", "4", "4"}), 8);
    const TensorId y = net.conv(x, 8);
    const TensorId xy = net.concat({x, y}, 1);
    const TensorId z = net.conv(xy, 8);
    Graph graph = net.finish({net.relu(net.concat({x, y, z}, 1))});
    rewrites::eliminate_concatenations(graph);
    CHECK(count(graph, OpKind::concat) == 0);
    std::vector<TensorId> copied;
    for (const Op& op : graph.ops) {
        if (op.kind != OpKind::copy) continue;
        copied.push_back(op.inputs[0]);
        CHECK(graph.tensors[op.outputs[0]].shape == graph.tensors[op.inputs[0]].shape);
        CHECK(graph.tensors[op.outputs[0]].producer < 4);  // before the convolution that reads the first joined tensor
    }
    CHECK(copied == std::vector<TensorId>{x, y});
}

TEST_CASE("inputs and pieces of a split are copied into a concatenation, what layers compute is not") {
    GraphBuilder net("shuffle block");
    const TensorId x = net.input("x", {"batch", "8", "4", "4"});
    const Tensor half{.name = "half", .shape = net.shape(net.conv(x, 4))};
    const std::vector<TensorId> halves =
        net.op(OpKind::split, "aten::chunk", {x}, {{"axis", std::int64_t{1}}}, {half, half});
    Graph graph = net.finish({net.concat({halves[0], net.conv(halves[1], 4), x}, 1)});
    rewrites::eliminate_concatenations(graph);
    std::vector<TensorId> copied;
    for (const Op& op : graph.ops) {
        if (op.kind == OpKind::copy) copied.push_back(op.inputs[0]);
    }
    CHECK(copied == std::vector<TensorId>{halves[0], x});
}

TEST_CASE("the concatenation of one part costs nothing") {
    GraphBuilder net("one part");
    const TensorId x = net.input("x", {"batch", "8", "4", "4"});
    Graph graph = net.finish({net.relu(net.concat({x}, 1))});
    rewrites::eliminate_concatenations(graph);
    CHECK(graph.ops.size() == 1);
}

TEST_CASE("a batch norm that no convolution took in clips its result itself") {
    GraphBuilder net("pre-activation");
    const TensorId x = net.input("x", {"batch", "8", "4", "4"});
    const TensorId shared = net.batch_norm(x);
    Graph graph = net.finish({net.conv(net.relu(net.batch_norm(x)), 8), net.add(net.relu(shared), shared),
                              net.pointwise("sigmoid", {net.batch_norm(x)})});
    rewrites::fuse_scale_and_activation(graph);
    CHECK(count(graph, OpKind::batch_norm) == 3);
    CHECK(count(graph, OpKind::pointwise) == 3);  // the relu whose norm is read twice, the sum and the sigmoid
}

TEST_CASE("movement within a node becomes one copy if it reorders, wherever it stands and whatever surrounds it") {
    for (std::size_t before = 0; before < 4; ++before) {
        for (std::size_t after = 0; after < 4; ++after) {
            for (const std::string steps : {"rr", "rrr", "rt", "tr", "rtr", "tt"}) {
                std::string text = "graph moves\ninput %x f32[batch,16,16]\n", last = "x";
                int count = 0;
                const auto add = [&](const std::string& op, const std::string& attributes) {
                    const std::string next = "t" + std::to_string(count++);
                    text += fmt::format("%{} f32[batch,16,16] = {}(%{}) {}\n", next, op, last, attributes);
                    last = next;
                };
                for (std::size_t i = 0; i < before; ++i) add("pointwise", "{function=\"tanh\"}");
                for (const char step : steps) step == 'r' ? add("reshape", "") : add("transpose", "{perm=[0,2,1]}");
                for (std::size_t i = 0; i < after; ++i) add("pointwise", "{function=\"tanh\"}");
                Graph graph = parse_text_graph(fmt::format("{}output %{}\n", text, last));
                const std::size_t all = graph.ops.size();
                for (std::size_t i = before; i < before + steps.size(); ++i) {
                    graph.ops[i].source = "com.microsoft::Attention";
                    graph.ops[i].name = "node/" + std::to_string(i);
                }
                rewrites::join_movement_of_nodes(graph);
                const bool reorders = steps.find('t') != std::string::npos;
                CAPTURE(before);
                CAPTURE(after);
                CAPTURE(steps);
                CHECK(::count(graph, OpKind::copy) == (reorders ? 1 : 0));
                CHECK(graph.ops.size() == (reorders ? before + 1 + after : all));
            }
        }
    }
}
