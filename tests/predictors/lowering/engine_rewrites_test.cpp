#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ftax/graph_builder.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "graphs/ir/strides.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/lowering/rewrites.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

long count(const Graph& graph, OpKind kind) {
    return std::count_if(graph.ops.begin(), graph.ops.end(), [&](const Op& op) { return op.kind == kind; });
}

/// Self-attention of four heads as a model spells it out: scaled, masked, softmax.
Graph attention(bool masked) {
    GraphBuilder net("attention");
    const TensorId x = net.input("x", {"batch", "seq", "64"});
    const auto heads = [&](TensorId y) {
        return net.transpose(net.reshape(net.linear(y, 64), {"batch", "seq", "4", "16"}), {0, 2, 1, 3});
    };
    const TensorId q = heads(x), k = heads(x), v = heads(x);
    TensorId scores = net.matmul(q, net.transpose(k, {0, 1, 3, 2}));
    scores = net.pointwise("div", {scores});
    if (masked) scores = net.add(scores, net.input("mask", {"batch", "1", "1", "seq"}));
    const TensorId context = net.transpose(net.matmul(net.softmax(scores), v), {0, 2, 1, 3});
    return net.finish({net.linear(net.reshape(context, {"batch", "seq", "64"}), 64)});
}

}  // namespace

TEST_CASE("attention that a model spells out becomes one operator, with its mask where it has one") {
    for (const bool masked : {false, true}) {
        Graph graph = attention(masked);
        rewrites::recognise_attention(graph);
        CHECK(count(graph, OpKind::softmax) == 0);
        CHECK(count(graph, OpKind::matmul) == 0);
        const auto op =
            std::find_if(graph.ops.begin(), graph.ops.end(), [](const Op& o) { return o.kind == OpKind::attention; });
        REQUIRE(op != graph.ops.end());
        CHECK(op->inputs.size() == (masked ? 4 : 3));
        const auto& keys = graph.tensors[op->inputs[1]].shape;
        CHECK(keys == graph.tensors[op->inputs[0]].shape);  // not the transposed ones
    }
}

TEST_CASE("attention with scores read by other operators is not fused") {
    GraphBuilder net("scores");
    const TensorId q = net.input("q", {"batch", "4", "seq", "16"});
    const TensorId scores = net.matmul(q, net.transpose(q, {0, 1, 3, 2}));
    Graph graph = net.finish({net.matmul(net.softmax(scores), q), scores});
    rewrites::recognise_attention(graph);
    CHECK(count(graph, OpKind::attention) == 0);
}

TEST_CASE("attention with shared heads, a sink and slopes is one operator over the heads as they are cached") {
    Graph graph = parse_text_graph(R"(
input %q f32[batch,8,seq,16]
input %k f32[batch,2,seq,16]
input %v f32[batch,2,seq,16]
input %slopes f32[8,1,seq]
input %mask f32[1,1,seq,seq]
input %sinks f32[batch,8,seq,1]
%k1 f32[batch,2,1,seq,16] = reshape(%k)
%k2 f32[batch,2,4,seq,16] = expand(%k1)
%k3 f32[batch,8,seq,16] = copy(%k2)
%k4 f32[batch,8,16,seq] = transpose(%k3) {perm=[0,1,3,2]}
%products f32[batch,8,seq,seq] = matmul(%q, %k4)
%sloping f32[batch,8,seq,seq] = pointwise(%products, %slopes) {function="add"}
%masked f32[batch,8,seq,seq] = pointwise(%sloping, %mask) {function="add"}
%joined f32[batch,8,seq,seq+1] = concat(%masked, %sinks) {axis=3}
%most f32[batch,8,seq,1] = reduce(%joined) {function="max" axes=[3]}
%less f32[batch,8,seq,seq+1] = pointwise(%joined, %most) {function="sub"}
%all f32[batch,8,seq,seq+1] = softmax(%less) {axis=3}
%weights f32[batch,8,seq,seq] = slice(%all) {axes=[3]}
%v1 f32[batch,2,1,seq,16] = reshape(%v)
%v2 f32[batch,2,4,seq,16] = expand(%v1)
%v3 f32[batch,8,seq,16] = copy(%v2)
%y f32[batch,8,seq,16] = matmul(%weights, %v3)
output %y
)");
    rewrites::recognise_attention(graph);
    REQUIRE(graph.ops.size() == 1);
    const Op& op = graph.ops[0];
    CHECK(op.kind == OpKind::attention);
    CHECK(graph.tensors[op.inputs[1]].name == "k");
    CHECK(graph.tensors[op.inputs[2]].name == "v");
    REQUIRE(op.inputs.size() == 4);
    CHECK(graph.tensors[op.inputs[3]].name == "mask");  // the mask that depends on the query, not the slopes
}

TEST_CASE("layers of one input become one product whose pieces no kernel moves") {
    Graph graph = attention(true);
    rewrites::recognise_attention(graph);
    rewrites::merge_sibling_layers(graph);
    CHECK(count(graph, OpKind::linear) == 2);
    REQUIRE(graph.ops[0].kind == OpKind::linear);
    CHECK(graph.expressions.constant_value(graph.tensors[graph.ops[0].outputs[0]].shape.back()) == 192);
    CHECK(graph.expressions.constant_value(graph.tensors[graph.ops[0].inputs[1]].shape[0]) == 192);
    CHECK(count(graph, OpKind::split) == 1);
    rewrites::fold_movement(graph);
    for (const OpKind moving : {OpKind::split, OpKind::transpose, OpKind::slice}) CHECK(count(graph, moving) == 0);
}

TEST_CASE("an activation moves past the other half of a gated layer to the product that reads it") {
    const auto kinds = [](const char* reader) {
        Graph graph = parse_text_graph(std::string("graph g\ninput %x f32[batch,64]\nweight %a f32[64,64]\n"
                                                   "weight %b f32[64,64]\n%g f32[batch,64] = linear(%x,%a)\n"
                                                   "%s f32[batch,64] = pointwise(%g) {function=\"silu\"}\n"
                                                   "%u f32[batch,64] = linear(%x,%b)\n") +
                                       reader);
        rewrites::defer_activations(graph);
        std::vector<OpKind> found;
        for (const Op& op : graph.ops) found.push_back(op.kind);
        return found;
    };
    using enum OpKind;
    CHECK(kinds("%y f32[batch,64] = pointwise(%s,%u) {function=\"mul\"}\noutput %y\n") ==
          std::vector{linear, linear, pointwise, pointwise});
    // Another reader, or none that is elementwise.
    CHECK(kinds("%y f32[batch,64] = pointwise(%s,%u) {function=\"mul\"}\n"
                "%z f32[batch,64] = pointwise(%s,%y) {function=\"add\"}\noutput %z\n") ==
          std::vector{linear, pointwise, linear, pointwise, pointwise});
    CHECK(
        kinds(
            "%y f32[batch,64] = linear(%s,%b)\n%z f32[batch,64] = pointwise(%y,%u) {function=\"mul\"}\noutput %z\n") ==
        std::vector{linear, pointwise, linear, linear, pointwise});
}

TEST_CASE("layers with and without a bias, or of another input, stay apart") {
    GraphBuilder net("layers");
    const TensorId x = net.input("x", {"batch", "64"});
    const TensorId y = net.linear(x, 32, false);
    Graph graph = net.finish({net.linear(x, 32), y, net.linear(y, 32, false)});
    rewrites::merge_sibling_layers(graph);
    CHECK(count(graph, OpKind::linear) == 3);
}

TEST_CASE("a transposition that an elementwise operator reads stays a kernel") {
    GraphBuilder net("movement");
    const TensorId x = net.input("x", {"batch", "8", "16"});
    Graph graph = net.finish({net.relu(net.transpose(x, {0, 2, 1}))});
    rewrites::fold_movement(graph);
    CHECK(count(graph, OpKind::transpose) == 1);
}

TEST_CASE("a sum that is read beyond its norm is written by the norm") {
    GraphBuilder net("pre-norm");
    const TensorId x = net.input("x", {"batch", "16", "64"});
    const TensorId sum = net.add(net.linear(x, 64), x);
    Graph graph = net.finish({net.add(net.linear(net.layer_norm(sum), 64), sum)});
    rewrites::fuse_residual_layer_norm(graph);
    const auto norm =
        std::find_if(graph.ops.begin(), graph.ops.end(), [](const Op& o) { return o.kind == OpKind::layer_norm; });
    REQUIRE(norm != graph.ops.end());
    CHECK(norm->outputs.size() == 2);
    CHECK(norm->outputs[1] == sum);
    CHECK(count(graph, OpKind::pointwise) == 1);
}

TEST_CASE("a sum joins its norm wherever its other readers run after the norm, and only there") {
    for (const std::size_t readers : {0, 1, 2}) {
        for (std::size_t early = 0; early <= readers; ++early) {  // readers between the sum and the norm
            CAPTURE(readers);
            CAPTURE(early);
            GraphBuilder net("readers");
            const TensorId x = net.input("x", {"batch", "16", "64"});
            const TensorId sum = net.add(net.linear(x, 64), x);
            std::vector<TensorId> outputs;
            for (std::size_t i = 0; i < early; ++i) outputs.push_back(net.linear(sum, 64));
            outputs.push_back(net.layer_norm(sum));
            for (std::size_t i = early; i < readers; ++i) outputs.push_back(net.linear(sum, 64));
            Graph graph = net.finish(outputs);
            rewrites::fuse_residual_layer_norm(graph);
            const bool joins = early == 0;
            CHECK(count(graph, OpKind::pointwise) == (joins ? 0 : 1));
            const auto norm = std::find_if(graph.ops.begin(), graph.ops.end(),
                                           [](const Op& o) { return o.kind == OpKind::layer_norm; });
            REQUIRE(norm != graph.ops.end());
            CHECK(norm->outputs.size() == (joins && readers > 0 ? 2 : 1));
            CHECK((norm->inputs[0] == sum) == !joins);
        }
    }
}

TEST_CASE("keys and values are appended to pages where a past and new tokens make them, whatever else is joined not") {
    // The cache of a decoder is joined from a past and what is new; a third part, or a past that is computed, is a
    // copy.
    for (const bool third : {false, true}) {
        for (const bool computed : {false, true}) {
            CAPTURE(third);
            CAPTURE(computed);
            std::string text = R"(
input %q f32[batch,4,1,16]
input %new f32[batch,4,1,16]
input %prefix f32[batch,4,past,16]
)";
            std::string past = "%prefix";
            if (computed) {
                text += "%cast f32[batch,4,past,16] = pointwise(%prefix) {function=\"relu\"}\n";
                past = "%cast";
            }
            const std::string length = third ? "past+2" : "past+1";
            const std::string cache = " f32[batch,4," + length + ",16] = concat(" + past + ", %new" +
                                      (third ? ", %new" : "") + ") {axis=2}\n";
            text += "%keys" + cache + "%values" + cache;
            text += "%out f32[batch,4,1,16] = attention(%q, %keys, %values) {causal=0}\noutput %out\n";
            Graph graph = parse_text_graph(text);
            rewrites::append_to_pages(graph);
            const bool appends = !third && !computed;
            CHECK(count(graph, OpKind::concat) == (appends ? 0 : 2));
            const auto op = std::find_if(graph.ops.begin(), graph.ops.end(),
                                         [](const Op& o) { return o.kind == OpKind::attention; });
            REQUIRE(op != graph.ops.end());
            CHECK(op->inputs.size() == (appends ? 6 : 4));
        }
    }
}

TEST_CASE("Inductor joins what reads what, across other kernels where nothing waits") {
    // conv-bn ; conv-bn ; add ; relu: both norms run in the kernel of the sum.
    GraphBuilder net("downsample");
    const TensorId x = net.input("x", {"batch", "8", "16", "16"});
    const TensorId main = net.batch_norm(net.conv(x, 16, {.kernel = 3, .pad = 1}));
    const TensorId shortcut = net.batch_norm(net.conv(x, 16));
    const TensorId sum = net.relu(net.add(main, shortcut));
    Graph graph = net.finish({net.global_average_pool(sum), sum});
    rewrites::fuse_into_readers(graph);
    CHECK(graph.ops.size() == 3);
    CHECK(count(graph, OpKind::conv) == 2);
    const Op& fused = graph.ops.back();
    CHECK(fused.text("function") == rewrites::fused_function);
    CHECK(fused.outputs.size() == 2);
}

TEST_CASE("an operator does not join a reader past a library call that needs its result") {
    GraphBuilder net("order");
    const TensorId x = net.input("x", {"batch", "64"});
    const TensorId y = net.relu(x);
    Graph graph = net.finish({net.add(net.linear(y, 64), y)});
    rewrites::fuse_into_readers(graph);
    REQUIRE(graph.ops.size() == 3);
    CHECK(graph.ops[1].kind == OpKind::linear);
    CHECK(graph.ops[0].outputs == std::vector<TensorId>{graph.ops[1].inputs[0]});
}

TEST_CASE("views between joined operators go, views that others read stay") {
    GraphBuilder net("views");
    const TensorId x = net.input("x", {"batch", "8", "16"});
    const TensorId y = net.relu(net.reshape(net.pointwise("gelu", {x}), {"batch", "128"}));
    Graph graph = net.finish({net.linear(net.reshape(y, {"8*batch", "16"}), 4)});
    rewrites::fuse_into_readers(graph);
    CHECK(count(graph, OpKind::reshape) == 1);
    CHECK(count(graph, OpKind::pointwise) == 1);
}

TEST_CASE("windows start a generated kernel, on values that are stored") {
    GraphBuilder net("windows");
    const TensorId x = net.input("x", {"batch", "8", "16", "16"});
    Graph graph = net.finish({net.relu(net.max_pool(net.relu(x), {.kernel = 2, .stride = 2}))});
    rewrites::fuse_into_readers(graph);
    REQUIRE(graph.ops.size() == 2);
    CHECK(graph.ops[0].source == "triton: aten::relu");
    CHECK(graph.ops[1].source == "triton: aten::max_pool2d+aten::relu");

    Graph resized = parse_text_graph(R"(graph resized
input %x f32[batch,8,16,16]
%y f32[batch,8,32,32] = resize(%x) {function="bilinear"}
%z f32[batch,8,32,32] = pointwise(%y) {function="relu"}
output %z
)");
    rewrites::fuse_into_readers(resized);
    CHECK(resized.ops.size() == 1);
}

TEST_CASE("generated kernels add a layer's bias if they are pointwise, a convolution's in any case") {
    const auto inputs_of_product = [](bool convolution, const std::string& readers) {
        const std::string shape = convolution ? "batch,8,16,16" : "batch,64";
        Graph graph = parse_text_graph(
            "graph bias\ninput %x f32[" + shape + "]\nweight %w f32" + (convolution ? "[8,8,1,1]" : "[64,64]") +
            "\nweight %b f32" + (convolution ? "[8]" : "[64]") + "\n%y f32[" + shape +
            "] = " + (convolution ? "conv" : "linear") + "(%x,%w,%b)\n" + readers + "output %z\n");
        rewrites::fuse_into_readers(graph);
        return graph.ops[0].inputs.size();
    };
    const std::string relu = "%z f32[batch,64] = pointwise(%y) {function=\"relu\"}\n";
    const std::string softmax = "%z f32[batch,64] = softmax(%y) {axis=-1}\n";
    const std::string relu_of_map = "%z f32[batch,8,16,16] = pointwise(%y) {function=\"relu\"}\n";
    const std::string mean_of_map = "%z f32[batch,8,1,1] = global_pool(%y) {function=\"average\"}\n";
    CHECK(inputs_of_product(false, relu) == 2);
    CHECK(inputs_of_product(false, softmax) == 3);
    const std::string both =
        "%m f32[batch,1] = reduce(%y) {function=\"mean\" axes=[1]}\n"
        "%z f32[batch,64] = pointwise(%y,%m) {function=\"sub\"}\n";
    CHECK(inputs_of_product(false, both) == 3);
    CHECK(inputs_of_product(true, relu_of_map) == 2);
    CHECK(inputs_of_product(true, mean_of_map) == 2);
}

TEST_CASE("ATen pools large windows, and before PyTorch 2.8 maxima of volumes") {
    const auto operators = [](const std::string& window, int torch, const char* framework = "torch-compile") {
        const Graph graph = parse_text_graph(
            "graph pool\ninput %x f32[batch,8,16,16,16]\n%y f32[batch,8,16,16,16] = pointwise(%x) {function=\"relu\"}\n"
            "%z f32[batch,8,4,4,4] = pool(%y) {" +
            window +
            "}\n"
            "%r f32[batch,8,4,4,4] = pointwise(%z) {function=\"relu\"}\noutput %r\n");
        PredictOptions options;
        options.libraries.torch = torch;
        const Graph rewritten =
            optimised_graph(graph, framework_model(framework), device_profile("l40s").device, options).value();
        return count(rewritten, OpKind::pool);
    };
    const std::string maximum = R"(kernel=[2,2,2] stride=[4,4,4] function="max")";
    CHECK(operators(maximum, 205) == 1);
    CHECK(operators(maximum, 205, "torch-compile-max-autotune") == 1);
    CHECK(operators(maximum, 208) == 0);
    CHECK(operators(maximum, 0) == 0);
    CHECK(operators(R"(kernel=[2,2,2] stride=[4,4,4] function="average")", 205) == 0);
    CHECK(operators(R"(kernel=[3,3,3] stride=[4,4,4] function="average")", 211) == 1);
    CHECK(operators(R"(kernel=[3,4,2] stride=[4,4,4] function="average")", 211) == 0);
}

TEST_CASE("a scan is generated, and stored for what reads it in a larger space") {
    const auto kernels = [](const std::string& shape) {
        Graph graph = parse_text_graph(
            "graph scan\ninput %x f32[batch,64]\ninput %b f32[" + shape +
            "]\n"
            "%m f32[batch,64] = pointwise(%x) {function=\"relu\"}\n%y f32[batch,64] = cumulative(%m) {axis=1}\n"
            "%z f32[" +
            shape + "] = pointwise(%y,%b) {function=\"add\"}\noutput %z\n");
        rewrites::fuse_into_readers(graph);
        return graph.ops.size();
    };
    CHECK(kernels("batch,64") == 1);
    CHECK(kernels("32,batch,64") == 2);
}

TEST_CASE("an activation of a norm that two kernels need is stored before it, in f32") {
    const auto first = [](const char* function) {
        GraphBuilder net("gate");
        const TensorId x = net.input("x", {"batch", "8", "16", "16"});
        const TensorId y = net.pointwise(function, {net.batch_norm(net.conv(x, 8))});
        const TensorId gate = net.conv(net.global_average_pool(y), 8);
        Graph graph = net.finish({net.conv(net.pointwise("mul", {y, gate}), 8)});
        rewrites::fuse_into_readers(graph);
        REQUIRE(graph.ops.size() == 5);
        return graph.ops[1];
    };
    CHECK(first("silu").outputs.size() == 2);
    CHECK(first("silu").integers(rewrites::full_outputs).size() == 1);
    CHECK(first("relu").integers(rewrites::full_outputs).empty());

    const auto padded = [](const std::string& function) {
        Graph graph = parse_text_graph(
            "graph padded\ninput %x f32[batch,8,16,16]\nweight %w f32[8]\n"
            "%n f32[batch,8,16,16] = batch_norm(%x,%w,%w,%w,%w)\n"
            "%y f32[batch,8,16,16] = pointwise(%n) {function=\"" +
            function + "\"}\n%z f32[batch,8,17,17] = pad(%y)\noutput %z\n");
        rewrites::fuse_into_readers(graph);
        return graph.ops.size();
    };
    CHECK(padded("silu") == 2);
    CHECK(padded("relu") == 1);
}

TEST_CASE("what a window reads is stored though its kernel reads it a second time") {
    GraphBuilder net("mixer");
    const TensorId x = net.relu(net.input("x", {"batch", "8", "16", "16"}));
    const TensorId mean = net.max_pool(x, {.kernel = 3, .stride = 1, .pad = 1});
    Graph graph = net.finish({net.pointwise("sub", {mean, x})});
    rewrites::fuse_into_readers(graph);
    REQUIRE(graph.ops.size() == 2);
    CHECK(graph.ops[1].source == "triton: aten::max_pool2d+aten::sub");
}

TEST_CASE("a parameter among its operands makes a generated kernel write f32 under autocast") {
    const auto seconds = [](bool scaled) {
        GraphBuilder net("scale");
        const TensorId x = net.linear(net.input("x", {"batch", "64"}), 768);
        const TensorId y = scaled ? net.pointwise("mul", {x, net.weight("gamma", {"768"})}) : net.relu(x);
        const Graph graph = net.finish({y});
        Predictor predictor(graph, device_profile("rtx-4090"), {.framework = "torch-compile"},
                            {.precision = Precision::amp});
        return predictor.predict({{"batch", 1 << 18}}).device_s;
    };
    CHECK(seconds(true) > 1.2 * seconds(false));
}

namespace {

/// Kernels that Inductor generates for a concatenation of convolutions that one or two activations read.
std::size_t kernels_of_parts(std::size_t parts, bool read_twice) {
    GraphBuilder net("parts");
    const TensorId x = net.input("x", {"batch", "8", "16", "16"});
    std::vector<TensorId> convolved;
    for (std::size_t i = 0; i < parts; ++i) convolved.push_back(net.conv(x, 8));
    const TensorId joined = net.concat(convolved, 1);
    std::vector<TensorId> outputs{net.relu(joined)};
    if (read_twice) outputs.push_back(net.pointwise("sigmoid", {joined}));
    Graph graph = net.finish(outputs);
    rewrites::fuse_into_readers(graph);
    return graph.ops.size() - parts;
}

}  // namespace

TEST_CASE("few parts are chosen from where they are read, many are joined first") {
    CHECK(kernels_of_parts(8, false) == 1);
    CHECK(kernels_of_parts(9, false) == 6);  // five kernels copy the parts, two concatenations at a time; relu
}

TEST_CASE("parts that several kernels read are joined first from the fifth on") {
    CHECK(kernels_of_parts(4, true) == 1);
    CHECK(kernels_of_parts(5, true) == 3);
}

TEST_CASE("Inductor before 2.8 reads NHWC parts of a contiguous tensor a sector an element") {
    const auto device_s = [](int torch, bool convolved) {
        GraphBuilder net("parts");
        const TensorId x = net.input("x", {"batch", "64", "56", "56"});
        const TensorId joined = net.concat({net.conv(x, 64, {3, 1, 1}), net.conv(x, 64, {3, 1, 1})}, 1);
        Graph graph = net.finish({convolved ? net.conv(joined, 64) : joined});
        Predictor predictor(graph, device_profile("rtx-4090"), {.framework = "torch-compile"},
                            {.precision = Precision::fp32, .libraries = {.torch = torch}});
        return predictor.predict({{"batch", 64}}).device_s;
    };
    CHECK(device_s(205, false) > device_s(208, false) + 3e-5);
    CHECK(device_s(205, true) == approx(device_s(208, true)));  // written in NHWC, as the convolution wants it
}

TEST_CASE("Inductor before 2.8 reads rows along the width of an NHWC tensor a sector an element") {
    const auto device_s = [](int torch, int axis) {
        GraphBuilder net("rows");
        const TensorId x = net.conv(net.input("x", {"batch", "64", "64", "64"}), 64, {3, 1, 1});
        Graph graph = net.finish({net.conv(net.softmax(x, axis), 64, {3, 1, 1})});
        Predictor predictor(graph, device_profile("rtx-4090"), {.framework = "torch-compile"},
                            {.precision = Precision::fp32, .libraries = {.torch = torch}});
        return predictor.predict({{"batch", 64}}).device_s;
    };
    CHECK(device_s(205, 3) > device_s(208, 3) + 3e-5);
    CHECK(device_s(205, 1) == approx(device_s(208, 1)));
}

TEST_CASE("a generated reduction takes longer than an elementwise kernel, partial variances most") {
    const auto waits = [](const std::string& shape, const std::string& operation) {
        Graph graph = parse_text_graph("graph one\ninput %x f32" + shape + "\n%y f32" + shape + " = " + operation +
                                       "\noutput %y\n");
        rewrites::fuse_into_readers(graph);
        std::vector<std::int64_t> values;
        for (const Op& op : graph.ops) values.push_back(op.integer(rewrites::reductions, 0));
        return values;
    };
    CHECK(waits("[64,512]", "pointwise(%x) {function=\"relu\"}") == std::vector<std::int64_t>{0});
    CHECK(waits("[64,512]", "softmax(%x) {axis=1}") == std::vector<std::int64_t>{1});
    CHECK(waits("[1024,512]", "softmax(%x) {axis=0}") == std::vector<std::int64_t>{1, 1, 1, 1, 0});
    CHECK(waits("[16,32,64,64]", "batch_norm(%x) {training=1}").front() == 3);
    const auto device_s = [](const std::string& operation) {
        const Graph graph =
            parse_text_graph("graph one\ninput %x f32[64,512]\n%y f32[64,512] = " + operation + "\noutput %y\n");
        return Predictor(graph, device_profile("h100-sxm5-80gb"), {.framework = "torch-compile"}, {})
            .predict({})
            .device_s;
    };
    CHECK(device_s("softmax(%x) {axis=1}") > device_s("pointwise(%x) {function=\"relu\"}") + 0.8e-6);
}

TEST_CASE("a product leaves its bias to generated kernels where nothing else reads it") {
    const auto inputs_of_layer = [](bool read_by_another_layer) {
        GraphBuilder net("bias");
        const TensorId x = net.input("x", {"batch", "64"});
        const TensorId y = net.linear(x, 64);
        const TensorId z = net.relu(y);
        Graph graph = net.finish({read_by_another_layer ? net.add(net.linear(y, 64), z) : z});
        rewrites::fuse_into_readers(graph);
        return graph.ops[0].inputs.size();
    };
    CHECK(inputs_of_layer(false) == 2);
    CHECK(inputs_of_layer(true) == 3);
}

TEST_CASE("generated kernels write what a product reads in its order; another copies what a product wrote") {
    const auto kernels = [](bool scaled) {
        GraphBuilder net("heads");
        const TensorId x = net.input("x", {"batch", "128", "4", "16"});
        const TensorId y = net.input("y", {"batch", "4", "16", "128"});
        const TensorId q = net.transpose(scaled ? net.relu(x) : x, {0, 2, 1, 3});
        Graph graph = net.finish({net.matmul(q, y)});
        propagate_strides(graph);
        Predictor predictor(graph, device_profile("rtx-4090"), {.framework = "torch-compile"}, {});
        return predictor.predict({{"batch", 8}}).kernels;
    };
    CHECK(kernels(false) == 2);  // copy, product
    CHECK(kernels(true) == 2);   // relu, product
}

TEST_CASE("attention without a fused kernel casts halves to f32 from PyTorch 2.5 on") {
    const auto prediction = [](const std::string& batch, int torch) {
        const std::string shape = "f16[" + batch + ",4,196,32]";
        const Graph graph = parse_text_graph("graph blocks\ninput %q " + shape + "\ninput %k " + shape + "\ninput %v " +
                                             shape + "\n%y " + shape + " = attention(%q,%k,%v)\noutput %y\n");
        Predictor predictor(graph, device_profile("rtx-4090"), {.framework = "pytorch-eager"},
                            {.precision = Precision::fp16, .libraries = {.torch = torch}});
        return predictor.predict({{"batch", 64}});
    };
    const Prediction before = prediction("batch,16", 204), after = prediction("batch,16", 205);
    CHECK(after.kernels == before.kernels + 3);
    CHECK(after.device_s > 1.5 * before.device_s);
    CHECK(prediction("batch", 205).device_s == prediction("batch", 204).device_s);
}

TEST_CASE("convolutions run on NHWC data where that pays") {
    const auto net = [](std::int64_t channels, std::int64_t groups, std::int64_t kernel = 3) {
        GraphBuilder builder("convolutions");
        TensorId x = builder.input("x", {"batch", std::to_string(channels), "14", "14"});
        for (int i = 0; i < 3; ++i)
            x = builder.conv(x, channels, {.kernel = kernel, .pad = kernel / 2, .groups = groups});
        return builder.finish({x});
    };
    CHECK(rewrites::gains_from_channels_last(net(256, 1)));
    CHECK(rewrites::gains_from_channels_last(net(256, 256)));
    CHECK_FALSE(rewrites::gains_from_channels_last(net(256, 4)));
    CHECK_FALSE(rewrites::gains_from_channels_last(attention(false)));
    // Images that come as NCHW are copied to NHWC, as are the three filters, and the result is copied back; what comes
    // as NHWC stays so.
    const auto compiled = [&](const Graph& graph, bool channels_last) {
        Predictor predictor(graph, device_profile("l40s"), framework_profile("torch-compile"),
                            {.channels_last = channels_last});
        return predictor.predict({{"batch", 64}});
    };
    const Graph graph = net(256, 1), pointwise = net(256, 1, 1), depthwise = net(256, 256);
    CHECK(compiled(graph, false).kernels == compiled(graph, true).kernels + 5);
    CHECK(compiled(graph, false).device_s > compiled(graph, true).device_s);
    // Both layouts of a filter of one pixel or one channel coincide.
    CHECK(compiled(pointwise, false).kernels == compiled(pointwise, true).kernels + 2);
    CHECK(compiled(depthwise, false).kernels == compiled(depthwise, true).kernels + 2);
}

TEST_CASE("compiled kernels write halves for products under autocast, eager ones f32") {
    GraphBuilder net("norms");
    const TensorId x = net.input("x", {"batch", "128", "768"});
    const Graph graph = net.finish({net.linear(net.layer_norm(net.add(x, x)), 768)});
    const auto kernels = [&](const char* framework) {
        Predictor predictor(graph, device_profile("rtx-4090"), {.framework = framework}, {.precision = Precision::amp});
        return predictor.predict({{"batch", 64}}).kernels;
    };
    CHECK(kernels("pytorch-eager") == 6);  // sum, norm, three casts, product
    CHECK(kernels("torch-compile") == 4);  // sum and norm, casts of weight and bias, product
}

namespace {

/// Operators that Inductor leaves of a text graph with input %x.
std::size_t generated(const std::string& text) {
    Graph graph = parse_text_graph("graph one\n" + text);
    rewrites::fuse_into_readers(graph);
    return graph.ops.size();
}

}  // namespace

TEST_CASE("what a reduction sums up decides whether its readers share its kernel") {
    const std::string normalised =
        "%m f32[16,1,64,64] = reduce(%x) {function=\"mean\" axes=[1] keepdims=1}\n"
        "%y f32[16,256,64,64] = pointwise(%x,%m) {function=\"div\"}\noutput %y\n";
    CHECK(generated("input %x f32[16,256,64,64]\n" + normalised) == 2);  // elements of a mean lie apart
    CHECK(generated("input %x f32[512,1024]\n%y f32[512,1024] = softmax(%x) {axis=1}\noutput %y\n") == 1);
    // Maximum, sum and quotient of columns: 65,536 columns fill a card, 512 do not, nor do 16 long rows.
    CHECK(generated("input %x f32[64,65536]\n%y f32[64,65536] = softmax(%x) {axis=0}\noutput %y\n") == 3);
    CHECK(generated("input %x f32[1024,512]\n%y f32[1024,512] = softmax(%x) {axis=0}\noutput %y\n") == 5);
    CHECK(generated("input %x f32[16,16384]\n%y f32[16,16384] = softmax(%x) {axis=1}\noutput %y\n") == 5);
    CHECK(generated("input %x f32[16,16384]\n%y f32[16] = reduce(%x) {function=\"argmax\" axes=[1]}\noutput %y\n") ==
          1);
}

TEST_CASE("a batch norm in training reads its operand for its statistics, then again") {
    const auto kernels = [](const std::string& attributes) {
        return generated(
            "input %x f32[16,64,256,256]\nweight %w f32[64]\n"
            "%n f32[16,64,256,256] = batch_norm(%x,%w,%w,%w,%w)" +
            attributes + "\n%y f32[16,64,256,256] = pointwise(%n) {function=\"relu\"}\noutput %y\n");
    };
    CHECK(kernels("") == 1);
    CHECK(kernels(" {training=1}") == 3);  // statistics in two steps
}

TEST_CASE("a compiler drops unread operators, and turns products over one batch into attention") {
    const std::string attention =
        "input %x f32[8,512,32]\ninput %k f32[8,32,512]\n%s f32[8,512,512] = matmul(%x,%k)\n"
        "%p f32[8,512,512] = softmax(%s) {axis=2}\n%y f32[8,512,32] = matmul(%p,%x)\n";
    const std::string mean = "%m f32[512,512] = reduce(%p) {function=\"mean\" axes=[0]}\n";
    CHECK(generated(attention + mean + "output %y\n") == 4);             // three operands of one batch, attention
    CHECK(generated(attention + mean + "output %y\noutput %m\n") == 4);  // two products, softmax, mean
    Graph graph = parse_text_graph("graph one\n" + attention + "output %y\n");
    rewrites::fuse_into_readers(graph);
    CHECK(graph.ops.back().kind == OpKind::attention);
    Graph two = parse_text_graph(
        "graph two\ninput %x f32[2,8,512,32]\ninput %k f32[2,8,32,512]\n%s f32[2,8,512,512] = matmul(%x,%k)\n"
        "%p f32[2,8,512,512] = softmax(%s) {axis=3}\n%y f32[2,8,512,32] = matmul(%p,%x)\noutput %y\n");
    rewrites::fuse_into_readers(two);
    CHECK(count(two, OpKind::attention) == 0);
    CHECK(count(two, OpKind::matmul) == 2);
}

TEST_CASE("engines end a product with gelu in either form or relu, and with no other function") {
    for (const std::string function : {"gelu", "gelu_tanh", "relu", "silu", "tanh", "sigmoid"}) {
        CAPTURE(function);
        Graph graph = parse_text_graph(
            "graph g\ninput %x f32[batch,64]\nweight %w f32[32,64]\n"
            "%1 f32[batch,32] = linear(%x, %w)\n"
            "%2 f32[batch,32] = pointwise(%1) {function=\"" +
                function + "\"}\noutput %2\n",
            "g");
        rewrites::fuse_activation(graph);
        const bool fused = function.starts_with("gelu") || function == "relu";
        CHECK(graph.ops.size() == (fused ? 1 : 2));
        CHECK(graph.ops[0].text("epilogue") == (fused ? function : ""));
        Graph twice = parse_text_graph(
            "graph g\ninput %x f32[batch,64]\nweight %w f32[32,64]\n%1 f32[batch,32] = linear(%x, %w)\n"
            "%2 f32[batch,32] = pointwise(%1) {function=\"relu\"}\n"
            "%3 f32[batch,32] = pointwise(%2) {function=\"" +
            function + "\"}\noutput %3\n");
        rewrites::fuse_activation(twice);
        rewrites::fuse_activation(twice);
        CHECK(twice.ops.size() == 2);  // a product ends with one function
    }
}

TEST_CASE("ONNX Runtime's Concat sends four tables for parts of unlike size, one for more than 32, none for few") {
    const auto kernels = [](const char* framework, const std::vector<int>& widths) {
        std::string text = "graph g\n", parts;
        int whole = 0;
        for (std::size_t i = 0; i < widths.size(); ++i) {
            text += "input %x" + std::to_string(i) + " f32[batch," + std::to_string(widths[i]) + "]\n";
            parts += (i > 0 ? ", %x" : "%x") + std::to_string(i);
            whole += widths[i];
        }
        text += "%y f32[batch," + std::to_string(whole) + "] = concat(" + parts + ") {axis=1}\noutput %y\n";
        const Graph graph = parse_text_graph(text, "g");
        return Predictor(graph, device_profile("t4"), framework_profile(framework), {}).predict({{"batch", 4}}).kernels;
    };
    const auto few = kernels("onnxruntime-cuda", {8, 8});
    CHECK(kernels("onnxruntime-cuda", {8, 16}) == few + 4);
    CHECK(kernels("onnxruntime-cuda", std::vector<int>(32, 8)) == few);
    CHECK(kernels("onnxruntime-cuda", std::vector<int>(33, 8)) == few + 1);
    CHECK(kernels("pytorch-eager", {8, 16}) == kernels("pytorch-eager", {8, 8}));
}
