#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/lowering/kernel_shapes.hpp"
#include "predictors/lowering/lowering.hpp"
#include "predictors/lowering/rewrites.hpp"

using namespace ftax;

namespace {

/// A residual block as pytorch-quantization writes it: both convolutions' operands and the shortcut quantised.
constexpr const char* residual_block = R"(graph block
input %x f32[batch,64,56,56]
weight %w1 i8[64,64,3,3]
weight %w2 i8[64,64,3,3]
%q0 i8[batch,64,56,56] = quantize(%x)
%d0 f32[batch,64,56,56] = dequantize(%q0)
%v1 f32[64,64,3,3] = dequantize(%w1)
%c1 f32[batch,64,56,56] = conv(%d0,%v1) {stride=[1,1] pad_begin=[1,1] pad_end=[1,1] dilation=[1,1] groups=1}
%r1 f32[batch,64,56,56] = pointwise(%c1) {function="relu"}
%q1 i8[batch,64,56,56] = quantize(%r1)
%d1 f32[batch,64,56,56] = dequantize(%q1)
%v2 f32[64,64,3,3] = dequantize(%w2)
%c2 f32[batch,64,56,56] = conv(%d1,%v2) {stride=[1,1] pad_begin=[1,1] pad_end=[1,1] dilation=[1,1] groups=1}
%q3 i8[batch,64,56,56] = quantize(%x)
%d3 f32[batch,64,56,56] = dequantize(%q3)
%s f32[batch,64,56,56] = pointwise(%c2,%d3) {function="add"}
%r2 f32[batch,64,56,56] = pointwise(%s) {function="relu"}
%m f32[batch,64,28,28] = pool(%r2) {function="max" kernel=[2,2] stride=[2,2] pad_begin=[0,0] pad_end=[0,0]}
%q4 i8[batch,64,28,28] = quantize(%m)
%d4 f32[batch,64,28,28] = dequantize(%q4)
%e f32[batch,64,28,28] = softmax(%d4) {axis=1}
output %e
)";

struct Run {
    Graph graph;
    Schedule schedule;
};

Run run_of(const char* text, const char* framework, const char* device, Precision precision) {
    const FrameworkModel& model = framework_model(framework);
    const PredictOptions options{.precision = precision};
    const Graph source = parse_text_graph(text);
    Run run{optimised_graph(source, model, device_spec(device), options).value_or(source), {}};
    run.schedule = lower(run.graph, device_spec(device), options, model.traits);
    return run;
}

std::vector<std::string> names(const Run& run) {
    std::vector<std::string> result;
    for (const Launch& launch : run.schedule.launches) {
        if (launch.kernel_count > 0) result.push_back(run.graph.ops[launch.op].name);
    }
    return result;
}
std::vector<OpKind> kinds(const Run& run) {
    std::vector<OpKind> result;
    for (const Launch& launch : run.schedule.launches) {
        if (launch.kernel_count > 0) result.push_back(run.graph.ops[launch.op].kind);
    }
    return result;
}

}  // namespace

TEST_CASE("TensorRT takes quantisation into convolutions, residual sum included, and moves it before a maximum") {
    const Run run = run_of(residual_block, "tensorrt", "t4", Precision::fp16);
    // The input is quantised once; the last pair stays, since softmax has no int8 kernel.
    CHECK(kinds(run) == std::vector<OpKind>{OpKind::quantize, OpKind::conv, OpKind::conv, OpKind::pool,
                                            OpKind::dequantize, OpKind::softmax});
    const BoundShapes bound = bind(run.graph, {{"batch", 2}});
    for (const Kernel& kernel : run.schedule.kernels) {
        if (!std::holds_alternative<kernels::ConvShape>(kernel.shape)) continue;
        CHECK(kernel.path == MathPath::int8_tensor);
        CHECK(weight_precision(kernel.shape) == Precision::int8);
        const auto shape = std::get<kernels::ConvShape>(kernel_shape(run.graph, run.schedule, kernel, bound));
        CHECK(shape.element_bytes == 1);
        CHECK(shape.channels_last);
        CHECK(run.schedule.storage[kernel.writes[0]] == DType::i8);
    }
    const Op& second = run.graph.ops[run.schedule.launches[2].op];
    CHECK(second.source == "Convolution + Add + ReLU");
}

TEST_CASE("ONNX Runtime runs QuantizeLinear and DequantizeLinear on CUDA, weights included, and convolves in float") {
    const Run run = run_of(residual_block, "onnxruntime-cuda", "t4", Precision::fp32);
    const std::vector<OpKind> found = kinds(run);
    CHECK(std::count(found.begin(), found.end(), OpKind::quantize) == 4);
    CHECK(std::count(found.begin(), found.end(), OpKind::dequantize) == 6);
    for (const Kernel& kernel : run.schedule.kernels) CHECK(weight_precision(kernel.shape) == Precision::fp32);
}

TEST_CASE("a product in full precision leaves quantising its result to a kernel of its own") {
    const Run run = run_of(R"(graph first
input %x f32[batch,3,32,32]
weight %w f32[16,3,3,3]
weight %v i8[16,16,1,1]
%c f32[batch,16,32,32] = conv(%x,%w) {stride=[1,1] pad_begin=[1,1] pad_end=[1,1] dilation=[1,1] groups=1}
%r f32[batch,16,32,32] = pointwise(%c) {function="relu"}
%q i8[batch,16,32,32] = quantize(%r)
%d f32[batch,16,32,32] = dequantize(%q)
%u f32[16,16,1,1] = dequantize(%v)
%y f32[batch,16,32,32] = conv(%d,%u) {stride=[1,1] pad_begin=[0,0] pad_end=[0,0] dilation=[1,1] groups=1}
output %y
)",
                           "tensorrt", "a100-sxm4-40gb", Precision::fp16);
    CHECK(kinds(run) == std::vector<OpKind>{OpKind::conv, OpKind::quantize, OpKind::conv});
    CHECK(run.schedule.kernels[0].path == MathPath::fp16_tensor_fp16_accumulate);
    CHECK(run.schedule.kernels[2].path == MathPath::int8_tensor);
}

TEST_CASE("what follows a quantised result is a kernel of its own") {
    const Run run = run_of(R"(graph apart
input %x f32[batch,16,32,32]
weight %v i8[16,16,1,1]
%p i8[batch,16,32,32] = quantize(%x)
%o f32[batch,16,32,32] = dequantize(%p)
%u f32[16,16,1,1] = dequantize(%v)
%c f32[batch,16,32,32] = conv(%o,%u) {stride=[1,1] pad_begin=[0,0] pad_end=[0,0] dilation=[1,1] groups=1}
%q i8[batch,16,32,32] = quantize(%c)
%d f32[batch,16,32,32] = dequantize(%q)
%y f32[batch,16,32,32] = pointwise(%d,%o) {function="add"}
output %y
)",
                           "tensorrt", "a100-sxm4-40gb", Precision::fp16);
    CHECK(kinds(run) == std::vector<OpKind>{OpKind::quantize, OpKind::conv, OpKind::pointwise});
    CHECK(run.graph.ops[1].source == "Convolution");
}

TEST_CASE("linear layers keep what the file says of their operands; a weight alone stays wide") {
    constexpr const char* text = R"(graph layers
input %x f32[batch,64]
weight %w i8[64,128]
weight %v i8[128,32]
%q i8[batch,64] = quantize(%x)
%d f32[batch,64] = dequantize(%q)
%u f32[64,128] = dequantize(%w)
%y f32[batch,128] = matmul(%d,%u)
%t f32[128,32] = dequantize(%v)
%z f32[batch,32] = matmul(%y,%t)
output %z
)";
    const Run run = run_of(text, "tensorrt", "h100-pcie-80gb", Precision::fp16);
    CHECK(names(run).size() == 3);
    CHECK(weight_precision(run.schedule.kernels[1].shape) == Precision::int8);
    CHECK(weight_precision(run.schedule.kernels[2].shape) == Precision::fp32);
    // A precision that quantises adds nothing to what the file says.
    const Run narrow = run_of(text, "tensorrt", "h100-pcie-80gb", Precision::int8);
    CHECK(names(narrow).size() == 3);
    CHECK(weight_precision(narrow.schedule.kernels[2].shape) == Precision::fp32);
    // Without tensor cores for int8 the products run as those of the rest.
    const Run older = run_of(text, "tensorrt", "v100-sxm2-16gb", Precision::fp16);
    CHECK(older.schedule.kernels[1].path == MathPath::fp16_tensor_fp16_accumulate);
}

TEST_CASE("a result that others read, too, stays wide; one that is only quantised after a maximum is stored narrow") {
    const std::string block = R"(graph block
input %x f32[batch,64,56,56]
weight %w1 i8[64,64,3,3]
%q0 i8[batch,64,56,56] = quantize(%x)
%d0 f32[batch,64,56,56] = dequantize(%q0)
%v1 f32[64,64,3,3] = dequantize(%w1)
%c1 f32[batch,64,56,56] = conv(%d0,%v1) {stride=[1,1] pad_begin=[1,1] pad_end=[1,1] dilation=[1,1] groups=1}
%m f32[batch,64,28,28] = pool(%c1) {function="max" kernel=[2,2] stride=[2,2] pad_begin=[0,0] pad_end=[0,0]}
%q4 i8[batch,64,28,28] = quantize(%m)
%d4 f32[batch,64,28,28] = dequantize(%q4)
%e f32[batch,64,28,28] = softmax(%d4) {axis=1}
output %e
)";
    const auto stored = [](const std::string& text) {
        const Run run = run_of(text.c_str(), "tensorrt", "t4", Precision::fp16);
        const auto conv = std::ranges::find_if(run.schedule.kernels, [](const Kernel& kernel) {
            return std::holds_alternative<kernels::ConvShape>(kernel.shape);
        });
        REQUIRE(conv != run.schedule.kernels.end());
        return run.schedule.storage[conv->writes[0]];
    };
    CHECK(stored(block) == DType::i8);
    CHECK(stored(block + "%z f32[batch,64,56,56] = softmax(%c1) {axis=1}\noutput %z\n") == DType::f16);
}
