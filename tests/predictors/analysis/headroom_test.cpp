#include "ftax/headroom.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "ftax/graph_builder.hpp"

using namespace ftax;

namespace {

std::vector<std::int64_t> dims(const Graph& graph, TensorId tensor, const ShapeBindings& bindings) {
    return bound_type(graph.tensors[tensor], bind(graph, bindings)).shape;
}

using Dims = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("channels widen; colours, filters, pixels and classes do not") {
    GraphBuilder net("cnn");
    const TensorId x = net.input("x", {"batch", "3", "32", "32"});
    const TensorId first = net.relu(net.batch_norm(net.conv(x, 16, {.kernel = 3, .pad = 1})));
    const TensorId depthwise = net.conv(first, 16, {.kernel = 3, .pad = 1, .groups = 16});
    const TensorId pooled = net.flatten(net.global_average_pool(depthwise), 1);
    const TensorId classes = net.linear(pooled, 10);
    const Graph graph = net.finish({classes});
    const ShapeBindings bindings{{"batch", 2}};
    const Graph wide = widened(graph, bindings, 3, 2);
    CHECK(dims(wide, x, bindings) == Dims{2, 3, 32, 32});
    CHECK(dims(wide, first, bindings) == Dims{2, 24, 32, 32});
    CHECK(dims(wide, pooled, bindings) == Dims{2, 24});
    CHECK(dims(wide, classes, bindings) == Dims{2, 10});
    const Op& grouped = wide.ops[wide.tensors[depthwise].producer];
    CHECK(grouped.integer("groups", 1) == 24);
    CHECK(dims(wide, grouped.inputs[1], bindings) == Dims{24, 1, 3, 3});
    CHECK(dims(wide, wide.ops[wide.tensors[classes].producer].inputs[1], bindings) == Dims{10, 24});
    const Op& norm = wide.ops[wide.tensors[wide.ops[wide.tensors[first].producer].inputs[0]].producer];
    CHECK(dims(wide, norm.inputs[1], bindings) == Dims{24});
}

TEST_CASE("groups of several channels get wider, not more, and biases and split dimensions with them") {
    GraphBuilder net("grouped");
    const TensorId x = net.input("x", {"batch", "3", "32", "32"});
    const TensorId first = net.relu(net.conv(x, 16, {.kernel = 3, .pad = 1}, true));
    const TensorId grouped = net.conv(first, 32, {.kernel = 3, .pad = 1, .groups = 4}, true);
    const TensorId pooled = net.flatten(net.global_average_pool(grouped), 1);
    const TensorId hidden = net.linear(pooled, 64);
    const TensorId split = net.reshape(hidden, {"batch", "8", "8", "1"});
    const TensorId classes = net.linear(net.reshape(split, {"batch", "64"}), 10);
    const Graph graph = net.finish({classes});
    const ShapeBindings bindings{{"batch", 2}};
    const Graph wide = widened(graph, bindings, 2, 1);
    const auto inputs = [&](TensorId of) { return wide.ops[wide.tensors[of].producer].inputs; };
    CHECK(wide.ops[wide.tensors[grouped].producer].integer("groups", 1) == 4);
    CHECK(dims(wide, inputs(grouped)[1], bindings) == Dims{64, 8, 3, 3});
    CHECK(dims(wide, inputs(grouped)[2], bindings) == Dims{64});
    CHECK(dims(wide, inputs(hidden)[1], bindings) == Dims{128, 64});
    CHECK(dims(wide, inputs(hidden)[2], bindings) == Dims{128});
    CHECK(dims(wide, split, bindings) == Dims{2, 8, 16, 1});
    CHECK(dims(wide, inputs(classes)[1], bindings) == Dims{10, 128});
    CHECK(dims(wide, inputs(classes)[2], bindings) == Dims{10});
}

TEST_CASE("attention heads get wider, not more; the vocabulary stays") {
    GraphBuilder net("attention");
    const TensorId ids = net.input("ids", {"batch", "seq"}, DType::i64);
    const TensorId x = net.embedding(ids, 1000, 96);
    const auto heads = [&](TensorId t) {
        return net.transpose(net.reshape(net.linear(t, 96), {"batch", "seq", "12", "8"}), {0, 2, 1, 3});
    };
    const TensorId q = heads(x);
    const TensorId scores = net.matmul(q, net.transpose(heads(x), {0, 1, 3, 2}));
    const TensorId mixed = net.matmul(net.softmax(scores), heads(x));
    const TensorId joined = net.reshape(net.transpose(mixed, {0, 2, 1, 3}), {"batch", "seq", "96"});
    const TensorId result = net.layer_norm(net.add(net.linear(joined, 96), x));
    const Graph graph = net.finish({result});
    const ShapeBindings bindings{{"batch", 2}, {"seq", 5}};
    const Graph wide = widened(graph, bindings, 2, 1);
    CHECK(dims(wide, wide.ops[wide.tensors[x].producer].inputs[0], bindings) == Dims{1000, 192});
    CHECK(dims(wide, q, bindings) == Dims{2, 12, 5, 16});
    CHECK(dims(wide, scores, bindings) == Dims{2, 12, 5, 5});
    CHECK(dims(wide, joined, bindings) == Dims{2, 5, 192});
    CHECK(dims(wide, result, bindings) == Dims{2, 5, 192});
}

TEST_CASE("depth grows the layers, not what a pass costs once: a network that much deeper takes the whole budget") {
    const auto mlp = [](int layers) {
        GraphBuilder net("mlp");
        TensorId x = net.input("x", {"batch", "256"});
        for (int i = 0; i < layers; ++i) x = net.relu(net.linear(x, 256));
        return net.finish({x});
    };
    constexpr int layers = 20;
    for (const char* framework : {"torchscript", "torch-compile", "pytorch-eager"}) {
        for (const double budget : {0.1, 0.5, 1.0}) {
            CAPTURE(framework);
            CAPTURE(budget);
            const DeviceProfile device = device_profile("t4");
            FrameworkProfile profile = framework_profile(framework);
            // A pass that costs as much as some ten layers by itself.
            std::erase_if(profile.parameters, [](const Parameter& p) { return p.name == "host.forward"; });
            profile.parameters.insert(
                std::lower_bound(profile.parameters.begin(), profile.parameters.end(), std::string("host.forward"),
                                 [](const Parameter& p, const std::string& n) { return p.name < n; }),
                {"host.forward", 800e-6, 0, "test"});
            const auto latency = [&](int depth) {
                const Graph graph = mlp(depth);
                return Predictor(graph, device, profile).predict({{"batch", 8}}).latency_s;
            };
            const Graph graph = mlp(layers);
            const auto growths = find_headroom(graph, Predictor(graph, device, profile), {{"batch", 8}}, budget);
            const double deepest = layers * growths.back().to;
            const double limit_s = (1 + budget) * latency(layers);
            CHECK(latency(static_cast<int>(deepest)) < 1.03 * limit_s);
            CHECK(latency(static_cast<int>(deepest) + 1) > 0.97 * limit_s);
        }
    }
}

TEST_CASE("growth stays within the budget, and one step more does not") {
    GraphBuilder net("mlp");
    TensorId x = net.input("x", {"batch", "256"});
    for (int i = 0; i < 20; ++i) x = net.relu(net.linear(x, 256));
    const Graph graph = net.finish({net.linear(x, 10)});
    const DeviceProfile device = device_profile("t4");
    const FrameworkProfile framework = framework_profile("pytorch-eager");
    Predictor predictor(graph, device, framework);
    const double base_s = predictor.predict({{"batch", 8}}).latency_s;
    auto growths = find_headroom(graph, predictor, {{"batch", 8}}, 0.05);
    REQUIRE(growths.size() == 3);
    for (const Headroom& growth : growths) {
        CAPTURE(growth.property);
        CHECK(growth.latency_s <= 1.05 * base_s * (1 + 1e-12));
        CHECK(growth.to > growth.from);
    }
    const auto batch = static_cast<std::int64_t>(growths[0].to);
    CHECK(predictor.predict({{"batch", batch}}).latency_s <= 1.05 * base_s);
    CHECK(predictor.predict({{"batch", batch + 1}}).latency_s > 1.05 * base_s);
    CHECK(growths[2].to < 1.1);  // deeper: every layer costs the host again
    // The curve of the width goes on beyond the flat part, where the budget ends.
    CHECK(growths[1].curve.empty());
    draw_width(graph, predictor, {{"batch", 8}}, growths[1]);
    const auto& curve = growths[1].curve;
    CHECK(growths[0].curve.empty());
    CHECK(curve.front().first == 1);
    CHECK(curve.front().second.latency_s == base_s);
    for (const auto& [width, prediction] : curve) {
        const Graph wide = widened(graph, {{"batch", 8}}, static_cast<std::int64_t>(8 * width), 8);
        CHECK(prediction.latency_s == Predictor(wide, device, framework).predict({{"batch", 8}}).latency_s);
        if (width <= growths[1].to) CHECK(prediction.latency_s <= 1.05 * base_s * (1 + 1e-12));
    }
    CHECK(curve.back().first > 1.5 * growths[1].to);
    CHECK(curve.back().second.latency_s > 1.05 * base_s);
    // The latency one step further, and how far that lasts.
    CHECK(growths[0].next_latency_s == predictor.predict({{"batch", batch + 1}}).latency_s);
    const auto next = static_cast<std::int64_t>(growths[0].next_to);
    CHECK(next > batch);
    CHECK(predictor.predict({{"batch", next}}).latency_s <= 1.005 * growths[0].next_latency_s);
    CHECK(predictor.predict({{"batch", next + 1}}).latency_s > 1.005 * growths[0].next_latency_s);
    CHECK(growths[1].next_latency_s > 1.05 * base_s);
    CHECK(growths[2].next_to == 0);
}
