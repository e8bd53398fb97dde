#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "ftax/predict.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "src/scenario/scenario.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

/// Kernels of one layer of BERT by the names of their launches, in order; 0-kernel launches left out.
struct Layer {
    std::vector<std::string> names;
    std::int64_t kernels = 0;
    double device_s = 0;
};

Layer layer_of_bert(const char* framework, const char* device, PredictOptions options, ShapeBindings bindings) {
    if (options.precision == Precision::fp32) options.precision = Precision::fp16;
    const Graph graph = load_graph("zoo:bert");
    Predictor predictor(graph, device_profile(device), {.framework = framework}, options);
    const Explanation explanation = predictor.explain(bindings);
    Layer layer;
    for (const OpPrediction& launch : explanation.launches) {
        if (launch.op == no_op) continue;
        const Op& op = predictor.graph().ops[launch.op];
        if (!op.module.starts_with("encoder.layer.3.") || launch.kernels == 0) continue;
        layer.names.push_back(op.source);
        layer.kernels += launch.kernels;
        layer.device_s += launch.device_s;
    }
    return layer;
}

const ShapeBindings one_question{{"batch", 1}, {"seq", 128}};

}  // namespace

TEST_CASE("TensorRT runs a BERT layer as seven kernels with the names of its layers") {
    const Layer layer = layer_of_bert("tensorrt", "a100-sxm4-40gb", {}, one_question);
    CHECK(layer.kernels == 7);
    CHECK(layer.names == std::vector<std::string>{"MatrixMultiply + Bias", "CustomQKVToContext (fmha)",
                                                  "MatrixMultiply + Bias", "CustomSkipLayerNorm",
                                                  "MatrixMultiply + Bias + GELU", "MatrixMultiply + Bias",
                                                  "CustomSkipLayerNorm"});
}

TEST_CASE("TensorRT runs a BERT layer in int8 as the same kernels, in half the time where arithmetic or bytes decide") {
    const ShapeBindings many{{"batch", 64}, {"seq", 128}};
    const Layer half = layer_of_bert("tensorrt", "a100-sxm4-40gb", {}, many);
    const Layer narrow = layer_of_bert("tensorrt", "a100-sxm4-40gb", {.precision = Precision::int8}, many);
    CHECK(narrow.names == half.names);  // no kernel that quantises
    CHECK(narrow.kernels == 7);
    CHECK(narrow.device_s == approx(0.55 * half.device_s).epsilon(0.15));
}

TEST_CASE("an engine under autocast runs the kernels that it runs in fp16, its norms in f32") {
    const auto layer = [](std::int64_t batch, Precision precision) {
        return layer_of_bert("tensorrt-onnx", "rtx-3090", {.precision = precision, .libraries = {.tensorrt = 805}},
                             {{"batch", batch}, {"seq", 128}});
    };
    const Layer half = layer(32, Precision::fp16);
    // Weights are cast when the engine is built, whether the context stays open or not.
    for (const Precision precision : {Precision::amp_cached, Precision::amp}) {
        const Layer mixed = layer(32, precision);
        CHECK(mixed.names == half.names);
        // Four passes over 32 · 128 · 768 values in 16 bits more for each of two norms, at 0.8 TB/s.
        CHECK(mixed.device_s - half.device_s > 2 * 4 * 32 * 128 * 768 * 2 / 0.936e12);
        CHECK(mixed.device_s < 1.3 * half.device_s);
        CHECK(layer(1, precision).device_s == approx(layer(1, Precision::fp16).device_s).epsilon(0.03));
    }
}

TEST_CASE("attention of TensorRT in int8 runs in parts beyond 384 tokens and in fp16 without the plugin") {
    const auto kernels = [](const char* framework, std::int64_t sequence) {
        return layer_of_bert(framework, "t4", {.precision = Precision::int8}, {{"batch", 1}, {"seq", sequence}})
            .kernels;
    };
    CHECK(kernels("tensorrt", 384) == 7);
    CHECK(kernels("tensorrt", 512) == 9);
    CHECK(kernels("tensorrt-onnx", 512) == 7);
}

TEST_CASE("engines without plugins compute f32 in TF32 and leave emulated tensor cores aside") {
    const auto device_s = [](const char* framework, const char* device, Precision precision) {
        const Graph graph = load_graph("zoo:bert");
        Predictor predictor(graph, device_profile(device), {.framework = framework}, {.precision = precision});
        return predictor.predict({{"batch", 32}, {"seq", 128}}).device_s;
    };
    using enum Precision;
    const char* card = "a100-sxm4-40gb";
    for (const char* engine : {"tensorrt-onnx", "onnxruntime-tensorrt", "torch-tensorrt"})
        CHECK(device_s(engine, card, fp32) == approx(device_s(engine, card, tf32)));
    for (const char* other : {"tensorrt", "pytorch-eager"})
        CHECK(device_s(other, card, fp32) > 2 * device_s(other, card, tf32));
    const char* without = "gtx-1660-ti";
    CHECK(device_s("pytorch-eager", without, fp16) > 4 * device_s("pytorch-eager", without, fp32));
    CHECK(device_s("tensorrt-onnx", without, fp16) < device_s("tensorrt-onnx", without, fp32));
}

TEST_CASE("what TensorRT fuses depends on its version, the chip, the sequence and how the network was written") {
    const auto kernels = [](const char* framework, const char* device, int version, std::int64_t sequence) {
        return layer_of_bert(framework, device, {.libraries = {.tensorrt = version}}, {{"batch", 1}, {"seq", sequence}})
            .kernels;
    };
    CHECK(kernels("tensorrt", "t4", 801, 128) == 8);  // GELU alone
    CHECK(kernels("tensorrt", "t4", 802, 128) == 7);
    CHECK(kernels("tensorrt", "t4", 701, 384) == 8);
    CHECK(kernels("tensorrt", "t4", 701, 512) == 10);  // attention in its parts
    CHECK(kernels("tensorrt", "t4", 802, 512) == 7);
    CHECK(kernels("tensorrt", "t4", 802, 1024) == 9);
    CHECK(kernels("tensorrt", "l4", 701, 128) == 10);               // older than the chip
    CHECK(kernels("tensorrt", "v100-sxm2-32gb", 1000, 128) == 10);  // no kernels for Volta
    CHECK(kernels("tensorrt-onnx", "t4", 805, 128) == 15);          // two norms in four kernels each
    CHECK(kernels("tensorrt-onnx", "t4", 806, 1024) == 7);
    CHECK(kernels("onnxruntime-tensorrt", "t4", 806, 128) == 7);
}

TEST_CASE("engines of ONNX files run the movement around attention kernel by kernel before 8.5, norms before 8.6") {
    const auto names = [](int version) {
        return layer_of_bert("tensorrt-onnx", "v100-sxm2-32gb", {.libraries = {.tensorrt = version}}, one_question)
            .names;
    };
    const auto count = [&](int version, const char* name) { return std::ranges::count(names(version), name); };
    const auto products = [&](int version) {
        return std::ranges::count_if(names(version),
                                     [](const std::string& name) { return name.starts_with("MatrixMultiply + Bias"); });
    };
    // Two means per norm; queries, keys, values and the result change places.
    CHECK(count(804, "Reduce") == 4);
    CHECK(count(804, "LayerNorm") == 0);
    CHECK(count(804, "Shuffle") >= 4);
    CHECK(count(804, "SoftMax") == 1);
    CHECK(products(804) == 6);
    CHECK(count(805, "Reduce") == 4);
    CHECK(count(806, "Reduce") == 0);
    CHECK(count(805, "Shuffle") == 0);
    CHECK(products(805) == 4);
}

TEST_CASE("engines accumulate products in half precision, which a GeForce card does as fast as a workstation's") {
    const ShapeBindings many{{"batch", 64}, {"seq", 128}};
    const auto ratio = [&](const char* framework) {
        return layer_of_bert(framework, "rtx-3090", {}, many).device_s /
               layer_of_bert(framework, "rtx-a6000", {}, many).device_s;
    };
    CHECK(ratio("tensorrt") < 1.1);
    CHECK(ratio("pytorch-eager") > 1.3);
}

TEST_CASE("enqueueing an engine costs the host each kernel, launching its CUDA graph next to nothing") {
    const Graph graph = load_graph("zoo:resnet18");
    const auto host_s = [&](const char* framework) {
        return Predictor(graph, device_profile("a100-sxm4-40gb"), framework_profile(framework),
                         {.precision = Precision::fp16})
            .predict({{"batch", 1}});
    };
    const Prediction enqueued = host_s("tensorrt"), captured = host_s("tensorrt-cuda-graph");
    CHECK(enqueued.host_s == approx(20e-6 + 3.7e-6 * static_cast<double>(enqueued.kernels)).epsilon(0.1));
    CHECK(captured.host_s == approx(20e-6).epsilon(0.01));
    CHECK(captured.kernels == enqueued.kernels);
    CHECK(captured.device_s == approx(enqueued.device_s));
}

TEST_CASE("TensorRT 8.0 spends the host's time on each group of an f32 convolution, not in a CUDA graph") {
    const Graph graph = load_graph("zoo:resnext50_32x4d");
    const auto host_s = [&](const char* framework, int version) {
        return Predictor(graph, device_profile("t4"), framework_profile(framework),
                         {.libraries = {.tensorrt = version}})
            .predict({{"batch", 1}})
            .host_s;
    };
    // 16 convolutions of 32 groups, each of 4.7 launches.
    CHECK(host_s("tensorrt", 800) - host_s("tensorrt", 804) == approx(16 * 32 * 15.4e-6).epsilon(0.15));
    CHECK(host_s("tensorrt-cuda-graph", 800) == host_s("tensorrt-cuda-graph", 804));
}

TEST_CASE("a head that one block does takes its scores one after the other while few blocks run") {
    const auto attention_s = [](std::int64_t batch, std::int64_t sequence) {
        const KernelModels models(device_spec("a100-sxm4-40gb"), kernel_parameters(device_profile("a100-sxm4-40gb")));
        const kernels::AttentionShape shape{.batch = batch,
                                            .heads = 16,
                                            .q_length = sequence,
                                            .kv_length = sequence,
                                            .path = kernels::AttentionPath::engine,
                                            .whole_heads = true};
        const auto plan = models.plan(shape, MathPath::fp16_tensor);
        return plan.seconds - plan.floor_s;
    };
    CHECK(attention_s(1, 384) == approx(9 * attention_s(1, 128)).epsilon(0.05));
    CHECK(attention_s(2, 384) < 1.1 * attention_s(1, 384));  // 32 of 108 multiprocessors
    CHECK(attention_s(64, 384) > 1.8 * attention_s(32, 384));
}

TEST_CASE("engines of seconds under load run slower than a product by itself where the power limit holds") {
    const auto seconds = [](const char* device, bool engine) {
        const KernelModels models(device_spec(device), kernel_parameters(device_profile(device)));
        return models
            .plan(
                kernels::GemmShape{
                    .m = 8192, .n = 4096, .k = 1024, .element_bytes = 2, .linear = true, .engine = engine},
                MathPath::fp16_tensor)
            .power_limited_s;
    };
    CHECK(seconds("l40s", true) > 1.1 * seconds("l40s", false));
    CHECK(seconds("t4", true) == approx(seconds("t4", false)).epsilon(0.15));
}

TEST_CASE("TensorRT's version is taken off its name, and named where it is none") {
    LibraryVersions libraries;
    CHECK(scenario::take_version("TensorRT@8.6.1", libraries).name == "tensorrt");
    CHECK(libraries.tensorrt == 806);
    CHECK(scenario::take_version("pytorch-eager", libraries).name == "pytorch-eager");
    CHECK(libraries.tensorrt == 806);
    for (const char* none : {"tensorrt@", "tensorrt@six", "tensorrt@6.0"}) {
        CAPTURE(std::string(none));
        CHECK_THROWS_AS(static_cast<void>(scenario::take_version(none, libraries)), Error);
    }
}

TEST_CASE("ONNX Runtime convolves large halves on tensor cores from 1.14 on, where copies to NHWC have room") {
    const Graph vgg = load_graph("zoo:vgg16");
    const auto device_s = [&](const char* framework) {
        PredictOptions options{.precision = Precision::fp16};
        static_cast<void>(scenario::take_version(framework, options.libraries));
        Predictor predictor(vgg, device_profile("t4"), framework_profile("onnxruntime-cuda"), options);
        return predictor.predict({{"batch", 32}}).device_s;
    };
    CHECK(device_s("onnxruntime-cuda@1.12") > 1.5 * device_s("onnxruntime-cuda@1.14"));
}

TEST_CASE("Torch-TensorRT leaves CNNs as they were and transformers no engine between heads") {
    const Graph vit = load_graph("zoo:vit32");
    Predictor predictor(vit, device_profile("t4"), framework_profile("torch-tensorrt"), {.precision = Precision::fp16});
    Predictor eager(vit, device_profile("t4"), framework_profile("pytorch-eager"), {.precision = Precision::fp16});
    CHECK(predictor.predict({{"batch", 1}}).latency_s < eager.predict({{"batch", 1}}).latency_s);
}
