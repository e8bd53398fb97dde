#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "ftax/device.hpp"
#include "ftax/error.hpp"
#include "ftax/graph_builder.hpp"
#include "ftax/headroom.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"

// Graphs that no exporter writes, but a text graph or a program may: most were found by fuzzing (generated_graph).

using namespace ftax;

namespace {

Prediction predict(const Graph& graph, const char* framework) {
    return Predictor(graph, device_profile("v100-sxm2-32gb"), framework_profile(framework)).predict({});
}

std::string failure_of(const Graph& graph) {
    try {
        static_cast<void>(predict(graph, "pytorch-eager"));
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::model);
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("an operator without a rule lowers the coverage by what it is taken for") {
    const Graph graph = parse_text_graph(
        "graph odd\ninput %x f32[8,64]\nweight %w f32[64,64]\n%1 f32[8,64] = linear(%x, %w)\n"
        "%2 f32[8,64] = custom(%1) \"my::operator\"\noutput %2\n");
    const Coverage coverage = predict(graph, "pytorch-eager").coverage;
    CHECK(coverage.nodes == 0.5);
    CHECK(coverage.flops == doctest::Approx(1 - 512.0 / (2 * 8 * 64 * 64 + 512)));
    CHECK(coverage.time > 0);
    CHECK(coverage.time < 1);
}

TEST_CASE("an operator without the inputs that its kind needs is refused by name, not read beyond them") {
    for (const bool absent : {true, false}) {
        GraphBuilder net("odd");
        const TensorId x = net.input("x", {"1", "8"});
        Tensor y;
        y.name = "product";
        const auto inputs = absent ? std::vector<TensorId>{x, no_tensor} : std::vector<TensorId>{x};
        const Graph graph = net.finish(net.op(OpKind::matmul, "", inputs, {}, {y}));
        CHECK(failure_of(graph) == "odd: operator product: matmul needs 2 inputs; input 2 is absent");
        CHECK_THROWS_AS(static_cast<void>(widened(graph, {}, 2, 1)), Error);
    }
}

TEST_CASE("products of nothing take a time, and a short one") {
    const Graph graph = parse_text_graph(
        "input %a f32[0,8]\ninput %b f32[8,0]\nweight %w f32[4,0,3,3]\ninput %x f32[2,0,8,8]\n"
        "%p f32[0,0] = matmul(%a, %b)\n"
        "%q f32[0,0,0] = matmul(%p, %p)\n"
        "%c f32[2,4,6,6] = conv(%x, %w)\n"
        "%d f32[0,4] = linear(%a, %a)\n"
        "%e f32[0,0,0,0] = attention(%x, %x, %x)\n");
    for (const std::string& framework : framework_names()) {
        CAPTURE(framework);
        const Prediction prediction = predict(graph, framework.c_str());
        CHECK(prediction.device_s > 0);
        CHECK(prediction.device_s < 1e-3);
        CHECK(std::isfinite(prediction.high_s));
    }
}

TEST_CASE("attributes of another type or beyond the tensor's axes change nothing") {
    const Graph graph = parse_text_graph(
        "input %x f32[1,8]\n"
        "%a f32[1,8] = pointwise(%x) {function=\"add\" scalar=3}\n"
        "%b f32[1,8] = pointwise(%a) {function=\"div\" scalar=\"six\"}\n"
        "%t f32[8,1] = transpose(%b) {perm=[9,-1]}\n"
        "output %t\n");
    CHECK(predict(graph, "tensorrt").device_s > 0);
    CHECK(to_text(widened(graph, {}, 2, 1)) == to_text(graph));
}
