#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ftax/import.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "ftax/work.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "tests/approx.hpp"
#include "tests/graphs/onnx/model_files.hpp"
#include "tests/measured.hpp"

using namespace ftax;

namespace {

Graph recurrence(const std::string& shape, const std::string& attributes) {
    return parse_text_graph("graph recurrent\ninput %x f32[" + shape + "]\n%y f32[" + shape + "] = recurrent(%x) {" +
                            attributes + "}\noutput %y\n");
}

Prediction predict(const Graph& graph, const char* framework = "pytorch-eager", const char* device = "t4") {
    Predictor predictor(graph, device_profile(device), framework_profile(framework), {});
    return predictor.predict({});
}

Graph exported(const char* name) {
    return load_graph((std::filesystem::path(FTAX_SOURCE_DIR) / "tests/graphs/exported" / name).string());
}

}  // namespace

TEST_CASE("a recurrence runs step by step: a product and an update for each step of each layer and direction") {
    const auto kernels = [](const std::string& attributes) {
        return predict(recurrence("100,8,256", "cell=\"lstm\" hidden=256 " + attributes)).kernels;
    };
    CHECK(kernels("") == 1 + 2 * 100);  // and the products with the input, once
    CHECK(kernels("layers=3") == 1 + 2 + 2 * 3 * 100);
    CHECK(kernels("directions=2") == 1 + 2 * 2 * 100);
    CHECK(predict(recurrence("8,100,256", "cell=\"lstm\" hidden=256 batch_first=1")).kernels == 1 + 1 + 2 * 100);
}

TEST_CASE("host and device of a recurrence grow with its steps, not with its batch alone") {
    const auto at = [](const char* shape) { return predict(recurrence(shape, "cell=\"gru\" hidden=256")); };
    const Prediction whole = at("400,8,256"), half = at("200,8,256");
    CHECK(whole.device_s > 1.9 * half.device_s);
    CHECK(whole.host_s > 1.5 * half.host_s);
    CHECK(at("400,9,256").host_s == approx(whole.host_s));
    // As a CUDA graph the steps cost the host nothing.
    const Graph graph = recurrence("400,8,256", "cell=\"gru\" hidden=256");
    CHECK(predict(graph, "cuda-graph").host_s < 0.1 * whole.host_s);
}

TEST_CASE("a small state stays on the chip under PyTorch, not under ONNX Runtime nor where the sequences are packed") {
    const Graph small = recurrence("1000,8,128", "cell=\"lstm\" hidden=128");
    CHECK(predict(small).kernels == 2);
    CHECK(predict(small, "onnxruntime-cuda").kernels == 1 + 2 * 1000);
    CHECK(predict(recurrence("1000,8,256", "cell=\"rnn\" hidden=256")).kernels == 2);
    CHECK(predict(recurrence("1000,8,256", "cell=\"gru\" hidden=256")).kernels == 1 + 2 * 1000);
    const Graph packed = parse_text_graph(
        "graph packed\ninput %x f32[700,128]\ninput %sizes i64[100]\n"
        "%y f32[700,128] = recurrent(%x, %sizes) {cell=\"lstm\" hidden=128 packed=1}\noutput %y\n");
    CHECK(predict(packed).kernels == 1 + 2 * 100);
    CHECK(work_of(packed, packed.ops[0], bind(packed, {})).flops == 2 * 700 * 4 * 128 * (128 + 128));
}

// github.com/xwang233/code-snippet, cudnn-rnn-bench-62143/forward: PyTorch 1.11, a card of 2021 that the table does not
// name. What the host decides takes 6.5 to 7 µs for each step of a layer there, an RTX 2070 Super's class of device.
TEST_CASE("steps take what cuDNN's take") {
    const auto ms = [](const char* shape, const char* cell, int hidden, int layers, const char* framework) {
        const Graph graph = recurrence(shape, "cell=\"" + std::string(cell) + "\" hidden=" + std::to_string(hidden) +
                                                  " layers=" + std::to_string(layers));
        return 1e3 * predict(graph, framework, "rtx-2080-ti").latency_s;
    };
    // Standard algorithm: LSTM of 104 and 152 values, four layers, before persistent kernels came.
    CHECK(ms("1709,8,40", "lstm", 104, 4, "onnxruntime-cuda") ==
          test::Measured("lstm of 104, 1709,8,40, onnxruntime-cuda"));
    CHECK(ms("5895,1,288", "lstm", 152, 4, "onnxruntime-cuda") ==
          test::Measured("lstm of 152, 5895,1,288, onnxruntime-cuda"));
    // In one kernel.
    CHECK(ms("2560,3,368", "lstm", 40, 4, "pytorch-eager") == test::Measured("lstm of 40, 2560,3,368, pytorch-eager"));
    CHECK(ms("1892,47,104", "lstm", 88, 4, "pytorch-eager") ==
          test::Measured("lstm of 88, 1892,47,104, pytorch-eager"));
    CHECK(ms("5895,1,288", "lstm", 152, 4, "pytorch-eager") ==
          test::Measured("lstm of 152, 5895,1,288, pytorch-eager"));
    CHECK(ms("5654,5,232", "rnn", 320, 4, "pytorch-eager") == test::Measured("rnn of 320, 5654,5,232, pytorch-eager"));
    CHECK(ms("4936,7,216", "rnn", 208, 4, "pytorch-eager") == test::Measured("rnn of 208, 4936,7,216, pytorch-eager"));
}

// timm_infer.csv, sequencer2d_s under amp, 1,024 images: 28 layers like this one and 8 others in both directions,
// beside what takes most of the 563 ms of an RTX 3090 (NHWC).
TEST_CASE("many sequences spread over the card, in halves over its tensor cores") {
    const DeviceProfile card = device_profile("rtx-3090");
    const KernelModels models(card.device, kernel_parameters(card));
    kernels::RecurrentShape layer{.steps = 16, .batch = 16384, .hidden = 96, .gates = 4};
    const double full_s = models.plan(layer, MathPath::fp32).seconds;
    layer.element_bytes = 2;
    const double half_s = models.plan(layer, MathPath::fp16_tensor).seconds;
    CHECK(72 * half_s < 0.1);
    CHECK(full_s > 2 * half_s);
    layer.batch *= 2;
    CHECK(models.plan(layer, MathPath::fp16_tensor).seconds == approx(2 * half_s).epsilon(0.05));
    // As few as the runs that taught the model take alike in both types.
    layer = {.steps = 2000, .batch = 47, .hidden = 88, .gates = 4};
    CHECK(models.plan(layer, MathPath::fp16_tensor).seconds == models.plan(layer, MathPath::fp32).seconds);
}

TEST_CASE("an LSTM of two layers takes as long through .pt2 as through ONNX") {
    const Graph pt2 = exported("lstm.pt2"), onnx = exported("lstm-dynamo.onnx");
    for (const char* framework : {"pytorch-eager", "onnxruntime-cuda", "cuda-graph"}) {
        CAPTURE(framework);
        const double host = framework == std::string("pytorch-eager") ? 0.3 : 0.05;  // two calls of 16 steps each
        CHECK(predict(onnx, framework).latency_s == approx(predict(pt2, framework).latency_s).epsilon(host));
    }
    CHECK(total_work(pt2, bind(pt2, {})).flops == approx(total_work(onnx, bind(onnx, {})).flops).epsilon(1e-3));
}

TEST_CASE("each step of a recurrence multiplies its input and its state by the weights of every gate") {
    const std::vector<std::pair<std::string, std::int64_t>> kinds{{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}};
    for (const auto& row : kinds) {
        const std::string& kind = row.first;
        const std::int64_t gates = row.second;
        for (const std::int64_t directions : {1, 2}) {
            constexpr std::int64_t steps = 7, batch = 3, width = 12, hidden = 20;
            test::OnnxModel model;
            model.input("x", {std::to_string(steps), std::to_string(batch), std::to_string(width)}).output("y");
            model.weight("w", {directions, gates * hidden, width}).weight("r", {directions, gates * hidden, hidden});
            auto& node = model.node(kind, {"x", "w", "r"}, {"y"});
            test::OnnxModel::attribute(node, "hidden_size", hidden);
            if (directions == 2) {
                auto* direction = node.add_attribute();
                direction->set_name("direction");
                direction->set_type(::onnx::AttributeProto::STRING);
                direction->set_s("bidirectional");
            }
            const Graph graph = model.import();
            CHECK_MESSAGE(total_work(graph, bind(graph, {})).flops ==
                              2 * steps * batch * directions * gates * hidden * (width + hidden),
                          kind);
        }
    }
}
