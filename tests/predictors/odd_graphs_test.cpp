#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <string>
#include <type_traits>

#include "ftax/device.hpp"
#include "ftax/error.hpp"
#include "ftax/graph_builder.hpp"
#include "ftax/headroom.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "tests/approx.hpp"
#include "tests/failure.hpp"

// Graphs that no exporter writes, but a text graph or a program may: most were found by fuzzing (generated_graph).

using namespace ftax;

namespace {

// A predictor refers to its graph.
static_assert(std::is_constructible_v<Predictor, Graph&, DeviceProfile, FrameworkProfile>);
static_assert(!std::is_constructible_v<Predictor, Graph, DeviceProfile, FrameworkProfile>);

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

TEST_CASE("axes that a tensor does not have are refused by name, not followed") {
    const std::string before =
        "graph odd\ninput %x f32[2,3,8,8]\nweight %w f32[4,3,1,1]\n"
        "%c f32[2,4,8,8] = conv(%x, %w) {stride=[1,1] pad_begin=[0,0] pad_end=[0,0] dilation=[1,1] groups=1}\n";
    const auto failure = [&](const std::string& operation) {
        const Graph graph = parse_text_graph(before + operation + " : odd_one\noutput %y\n");
        return test::failure_of([&] {
            return Predictor(graph, device_profile("t4"), framework_profile("pytorch-eager"), {.channels_last = true})
                .predict({});
        });
    };
    for (const auto& [operation, message] : std::map<std::string, std::string>{
             {"%y f32[2,8,8,4] = transpose(%c) {perm=[0,2,300000,1]}",
              "odd: operator odd_one: perm [0,2,300000,1] is not a permutation of 4 dimensions"},
             {"%y f32[2,8] = transpose(%c) {perm=[1,0]}",
              "odd: operator odd_one: perm [1,0] is not a permutation of 4 dimensions"},
             {"%y f32[2,4,8] = slice(%c) {axes=[-7000000] step=[1]}",
              "odd: operator odd_one: axes: -7000000 is not one of 4 dimensions"},
             {"%y f32[2,4,8,8] = slice(%c) {axes=[4] step=[1]}",
              "odd: operator odd_one: axes: 4 is not one of 4 dimensions"},
             {"%y f32[2,4,8,8] = copy(%c) {axes=[2,9] shifts=[1,1]}",
              "odd: operator odd_one: axes: 9 is not one of 4 dimensions"},
             {"%y f32[2,4,8,8] = copy(%c) {axes=[2,3,1] shifts=[1]}", "odd: operator odd_one: 1 shifts for 3 axes"}}) {
        CHECK(failure(operation).code == ErrorCode::model);
        CHECK(failure(operation).message == message);
    }
    CHECK_FALSE(failure("%y f32[2,8,8,4] = transpose(%c) {perm=[0,2,3,1]}"));
}

TEST_CASE("an operator without a rule lowers the coverage by what it is taken for") {
    const Graph graph = parse_text_graph(
        "graph odd\ninput %x f32[8,64]\nweight %w f32[64,64]\n%1 f32[8,64] = linear(%x, %w)\n"
        "%2 f32[8,64] = custom(%1) \"my::operator\"\noutput %2\n");
    const Coverage coverage = predict(graph, "pytorch-eager").coverage;
    CHECK(coverage.nodes == 0.5);
    CHECK(coverage.flops == approx(1 - 512.0 / (2 * 8 * 64 * 64 + 512)));
    CHECK(coverage.time > 0);
    CHECK(coverage.time < 1);

    // Work on a tensor of unknown shape is not counted: no full coverage of a model whose layers are all missing.
    const Prediction shapeless =
        predict(parse_text_graph("graph odd\ninput %x f32[8,64]\nweight %w f32[64,64]\n"
                                 "%1 f32[8,64] = linear(%x, %w)\n"
                                 "%2 f32? = reduce(%1) {function=\"sum\" axes=[0]}\noutput %2\n"),
                "pytorch-eager");
    CHECK(shapeless.coverage.nodes == 0.5);
    REQUIRE(shapeless.warnings.size() == 1);
    CHECK(shapeless.warnings[0] ==
          "1 of 2 operators have tensors of unknown shape, whose work and bytes are not counted");
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
        "input %a f32[0,8]\ninput %b f32[8,0]\nweight %w f32[4,0,3,3]\ninput %cache f32[2,0,8,8]\n"
        "%p f32[0,0] = matmul(%a, %b)\n"
        "%q f32[0,0,0] = matmul(%p, %p)\n"
        "%c f32[2,4,6,6] = conv(%cache, %w)\n"
        "%d f32[0,4] = linear(%a, %a)\n"
        "%e f32[0,0,0,0] = attention(%cache, %cache, %cache)\n");
    for (const std::string& framework : framework_names()) {
        CAPTURE(framework);
        const Prediction prediction = predict(graph, framework.c_str());
        CHECK(prediction.device_s > 0);
        CHECK(prediction.device_s < 1e-3);
        CHECK(std::isfinite(prediction.high_s));
    }
}

TEST_CASE("attributes of another type change nothing") {
    const Graph graph = parse_text_graph(
        "input %x f32[1,8]\n"
        "%a f32[1,8] = pointwise(%x) {function=\"add\" scalar=3}\n"
        "%b f32[1,8] = pointwise(%a) {function=\"div\" scalar=\"six\"}\n"
        "%t f32[8,1] = transpose(%b) {perm=[1,0]}\n"
        "output %t\n");
    CHECK(predict(graph, "tensorrt").device_s > 0);
    CHECK(to_text(widened(graph, {}, 2, 1)) == to_text(graph));
}

TEST_CASE("a recurrence needs no weights among its inputs: they are counted from its attributes") {
    const std::string text =
        "graph odd\ninput %x f32[16,8,64]\n"
        "%y f32[16,8,128] = recurrent(%x) {cell=\"lstm\" hidden=128}\noutput %y\n";
    CHECK(predict(parse_text_graph(text), "pytorch-eager").device_s > 0);
}

TEST_CASE("a convolution of what has no channels is refused, one of an unknown shape is not followed") {
    const auto graph = [](const char* x, const char* w) {
        return parse_text_graph(std::string("graph odd\ninput %x f32") + x + "\nweight %w f32" + w +
                                "\n%y f32[1,4,8,8] = conv(%x, %w) {stride=[1,1]} : odd_one\noutput %y\n");
    };
    CHECK(failure_of(graph("[3]", "[4,3,1,1]")) ==
          "odd: operator odd_one: conv needs at least 2 dimensions; input 1 has 1");
    CHECK(failure_of(graph("[1,3,8,8]", "[]")) ==
          "odd: operator odd_one: conv needs at least 2 dimensions; input 2 has 0");
    CHECK(failure_of(graph("[1,3,8,8]", "[4,3,1,1]")).empty());
    CHECK(failure_of(graph("?", "[4,3,1,1]")).empty());
    CHECK(failure_of(graph("[1,3,8,8]", "?")).empty());
}

TEST_CASE("sizes whose bytes no integer counts are refused or predicted, not wrapped around") {
    const auto failure = [](const std::string& operation) {
        const Graph graph =
            parse_text_graph(std::string("graph odd\ninput %x f32[4611686018427387904,1]") +
                             "\nweight %w f32[8,4611686018427387904]\n" + operation + " : odd_one\noutput %y\n");
        return test::failure_of([&] {
            return Predictor(graph, device_profile("t4"), framework_profile("pytorch-eager"),
                             {.precision = Precision::fp16})
                .predict({});
        });
    };
    CHECK(failure("%y f32[4611686018427387904,1] = pointwise(%x) {function=\"relu\"}").code == ErrorCode::limit);
    CHECK_FALSE(failure("%y f32[1,8] = linear(%w, %w)"));
}

TEST_CASE("a table without rows to look up and a norm of no groups are predicted") {
    const std::string lookup =
        "graph odd\ninput %t f32[]\ninput %i i64[4]\n%y f32[4,8] = embedding(%t, %i)\noutput %y\n";
    const std::string norm =
        "graph odd\ninput %x f32[2,8,8,8]\nweight %g f32[8]\nweight %h f32[8]\n"
        "%y f32[2,8,8,8] = group_norm(%x, %g, %h) {groups=0}\noutput %y\n";
    for (const std::string& text : {lookup, norm}) {
        for (const char* framework : {"pytorch-eager", "torch-compile", "onnxruntime-cuda", "tensorrt"})
            CHECK(predict(parse_text_graph(text), framework).latency_s > 0);
    }
}
