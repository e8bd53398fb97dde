#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ftax/import.hpp"
#include "ftax/predict.hpp"
#include "src/scenario/scenario.hpp"

using namespace ftax;

namespace {

double latency_s(Predictor& predictor, std::int64_t batch) {
    return predictor.predict({{"batch", batch}}).latency_s;
}

}  // namespace

TEST_CASE("a float convolutional network in int8 under TensorRT: convolutions, pooling and sums; the head stays f16") {
    const Graph graph = load_graph("zoo:resnet50");
    Predictor predictor(graph, device_profile("t4"), {.framework = "tensorrt"}, {.precision = Precision::int8});
    int narrow = 0, wide = 0;
    for (const auto& kernels : predictor.explain({{"batch", 8}}).kernels) {
        for (const KernelDetail& kernel : kernels) {
            narrow += kernel.path == "int8_tensor";
            wide += kernel.path.starts_with("fp16_tensor");
        }
    }
    CHECK(narrow == 53);
    CHECK(wide == 1);
}

TEST_CASE("on every card TensorRT's int8 is no slower than its fp16, nor that than fp32") {
    for (const std::string model :
         {"zoo:resnet50", "zoo:mobilenet_v2", "zoo:densenet", "zoo:shufflenet", "zoo:efficientnet"}) {
        const Graph graph = load_graph(model);
        for (const std::string device : {"l4", "a2", "a10", "jetson-agx-orin-64gb", "h100-pcie-80gb", "h100-sxm5-80gb",
                                         "a100-sxm4-40gb", "a30", "t4", "rtx-4090", "rtx-3090", "l40s", "b200"}) {
            CAPTURE(model);
            CAPTURE(device);
            std::vector<Predictor> predictors;
            for (const Precision precision : {Precision::int8, Precision::fp16, Precision::fp32}) {
                // In a graph: enqueueing the kernel that converts the input costs the host more than int8 may save.
                predictors.emplace_back(graph, device_profile(device),
                                        FrameworkProfile{.framework = "tensorrt-cuda-graph"},
                                        PredictOptions{.precision = precision});
            }
            for (const std::int64_t batch : {1, 8, 32, 128}) {
                CAPTURE(batch);
                CHECK(latency_s(predictors[0], batch) <= latency_s(predictors[1], batch));
                CHECK(latency_s(predictors[1], batch) <= latency_s(predictors[2], batch));
            }
        }
    }
}

TEST_CASE("a card without int8 tensor cores runs the engine in f16, with a warning") {
    const Graph graph = load_graph("zoo:resnet50");
    const DeviceProfile volta = device_profile("v100-sxm2-16gb");
    const auto predict = [&](Precision precision) {
        return Predictor(graph, volta, {.framework = "tensorrt"}, {.precision = precision}).predict({{"batch", 8}});
    };
    const Prediction narrow = predict(Precision::int8);
    CHECK(narrow.latency_s == predict(Precision::fp16).latency_s);
    CHECK(std::any_of(narrow.warnings.begin(), narrow.warnings.end(),
                      [](const std::string& w) { return w.find("has no tensor cores for it") != std::string::npos; }));
}

TEST_CASE(
    "TensorRT's fp8 with attention in 16 bits lies between its int8 and fp16, and is faster with attention in fp8") {
    for (const std::string model : {"zoo:bert", "zoo:vit-base-patch16-224"}) {
        const Graph graph = load_graph(model);
        for (const std::string device : {"l4", "rtx-4090", "l40s", "h100-pcie-80gb", "rtx-5090"}) {
            CAPTURE(model);
            CAPTURE(device);
            const DeviceProfile card = device_profile(device);
            const auto predictor = [&](Precision precision, int version) {
                return Predictor(graph, card, {.framework = "tensorrt"},
                                 {.precision = precision, .libraries = {.tensorrt = version}});
            };
            Predictor int8 = predictor(Precision::int8, 1006), fp8 = predictor(Precision::fp8, 1006),
                      older = predictor(Precision::fp8, 1000), fp16 = predictor(Precision::fp16, 1006);
            for (const std::int64_t batch : {1, 8, 32, 128}) {
                CAPTURE(batch);
                const auto seconds = [&](Predictor& p) {
                    return p
                        .predict(model == "zoo:bert" ? ShapeBindings{{"batch", batch}, {"seq", 384}}
                                                     : ShapeBindings{{"batch", batch}})
                        .latency_s;
                };
                CHECK(seconds(int8) <= seconds(older));
                CHECK(seconds(fp8) < seconds(older));
                // GeForce cards sum fp16 at the rate of fp8, whose sums are f32.
                CHECK(seconds(older) < (device.starts_with("rtx") ? 1.1 : 1) * seconds(fp16));
            }
        }
    }
}

TEST_CASE("TensorRT's attention is one kernel in 16 and 8 bits, its parts in f32") {
    const Graph graph = load_graph("zoo:bert");
    const auto fused = [&](Precision precision) {
        Predictor predictor(graph, device_profile("a10"), {.framework = "tensorrt"}, {.precision = precision});
        int count = 0;
        for (const auto& kernels : predictor.explain({{"batch", 8}, {"seq", 128}}).kernels) {
            for (const KernelDetail& kernel : kernels) count += kernel.name.starts_with("fmha_v2");
        }
        return count;
    };
    CHECK(fused(Precision::fp32) == 0);
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::int8}) CHECK(fused(precision) == 12);
}
