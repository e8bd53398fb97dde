#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/error.hpp"
#include "ftax/predict.hpp"
#include "ftax/text_graph.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/lowering/kernel_shapes.hpp"
#include "predictors/lowering/lowering.hpp"

using namespace ftax;

namespace {

constexpr const char* layers = R"(graph layers
input %x f32[batch,64]
weight %w f32[128,64]
weight %head f32[1000,128]
%y f32[batch,128] = linear(%x,%w)
%n f32[batch,128] = layer_norm(%y)
%z f32[batch,1000] = linear(%n,%head)
output %z
)";

Schedule lowered(const Graph& graph, const char* device, Precision precision) {
    return lower(graph, device_spec(device), {.precision = precision}, framework_model("pytorch-eager").traits);
}

}  // namespace

TEST_CASE("layers are quantised, with a kernel for their activations; norms and the head stay as stored") {
    const Graph graph = parse_text_graph(layers);
    const Schedule schedule = lowered(graph, "h100-sxm5-80gb", Precision::fp8);
    const BoundShapes bound = bind(graph, {{"batch", 4}});
    REQUIRE(schedule.kernels.size() == 4);
    const auto shape = [&](std::size_t i) { return kernel_shape(graph, schedule, schedule.kernels[i], bound); };
    CHECK(std::get<kernels::QuantizeShape>(shape(0)) == kernels::QuantizeShape{4, 64, Precision::fp8});
    const auto layer = std::get<kernels::GemmShape>(shape(1));
    CHECK(layer.operands == Precision::fp8);
    CHECK(schedule.kernels[1].path == MathPath::fp8_tensor);
    CHECK(std::get<kernels::MemoryShape>(shape(2)).element_bytes == 2);
    CHECK(std::get<kernels::GemmShape>(shape(3)).operands == Precision::fp32);
    CHECK(schedule.kernels[3].path == MathPath::bf16_tensor);
}

TEST_CASE("SGLang's products with block scales hide the scaling of sums, other engines' do not") {
    const Graph graph = parse_text_graph(R"(graph layers
input %x f32[batch,5120]
weight %v f32[17408,5120]
%y f32[batch,17408] = linear(%x,%v)
output %y
)");
    const auto hides = [&](const char* framework) {
        const PredictOptions options{.precision = Precision::fp8_block, .libraries = {.engine = 102}};
        const Schedule schedule =
            lower(graph, device_spec("h200-sxm-141gb"), options, framework_model(framework).traits);
        return std::get<kernels::GemmShape>(schedule.kernels.back().shape).hides_promotion;
    };
    CHECK(hides("sglang"));
    CHECK_FALSE(hides("vllm"));
    CHECK_FALSE(hides("tensorrt-llm"));
}

TEST_CASE(
    "FlashInfer's products scale sums of blocks outside of Blackwell's tensor cores, but not in groups of attention") {
    const auto scales_outside = [](const char* device, bool flashinfer, std::string_view experts) {
        const Graph graph = parse_text_graph(fmt::format(R"(graph layers
input %x f32[batch,256]
weight %v f32[256,256]
weight %w f32[8,256,256]
%y f32[batch,256] = linear(%x,%v)
%z f32[batch,256] = matmul(%y,%w) {{experts=8 experts_per_token=2{}}}
output %z
)",
                                                         experts));
        const FrameworkModel& model = framework_model("sglang");
        const PredictOptions options{
            .precision = Precision::fp8_block, .libraries = {.engine = 5}, .flashinfer_gemm = flashinfer};
        const Schedule schedule = lower(graph, device_spec(device), options, model.traits);
        const auto product = std::ranges::find_if(schedule.kernels, [](const Kernel& kernel) {
            return std::holds_alternative<kernels::GemmShape>(kernel.shape);
        });
        REQUIRE(product != schedule.kernels.end());
        return std::get<kernels::GemmShape>(product->shape).scaled_outside;
    };
    CHECK(scales_outside("b200", true, ""));
    CHECK(scales_outside("b300", true, ""));
    CHECK_FALSE(scales_outside("b200", true, " groups=8"));
    CHECK_FALSE(scales_outside("h200-sxm-141gb", true, ""));
    CHECK_FALSE(scales_outside("b200", false, ""));
}

TEST_CASE("weights alone need no kernel for activations") {
    const Graph graph = parse_text_graph(layers);
    const Schedule schedule = lowered(graph, "a100-sxm4-80gb", Precision::w4a16);
    REQUIRE(schedule.kernels.size() == 3);
    CHECK(weight_precision(schedule.kernels[0].shape) == Precision::w4a16);
    CHECK(schedule.kernels[0].path == MathPath::fp16_tensor);
}

TEST_CASE("rows sorted by expert are one grouped product, whose weights a precision may quantise") {
    const Graph graph = parse_text_graph(R"(graph experts
input %x f32[batch,64]
weight %w f32[8,64,128]
%y f32[batch,128] = matmul(%x,%w) {experts=8 experts_per_token=2}
%z f32[batch,128] = pointwise(%y) {function="relu"}
output %z
)");
    const BoundShapes bound = bind(graph, {{"batch", 6}});
    for (const Precision precision : {Precision::bf16, Precision::fp8}) {
        const Schedule schedule = lowered(graph, "h100-sxm5-80gb", precision);
        const Kernel& kernel = schedule.kernels[precision == Precision::fp8 ? 1 : 0];
        const auto shape = std::get<kernels::GroupedGemmShape>(kernel_shape(graph, schedule, kernel, bound));
        CHECK(shape.experts == 8);
        CHECK(shape.per_token == 2);
        CHECK(shape.rows == 6);
        CHECK(shape.n == 128);
        CHECK(shape.k == 64);
        CHECK(precision_spec(shape.operands).quantizes_weights() == (precision == Precision::fp8));
    }
}

TEST_CASE(
    "sums of experts with block scales are scaled outside of the tensor cores of a B200, unless DeepGEMM pads them") {
    const auto experts = [&](const char* device, const char* framework, int version, Precision precision,
                             int groups = 1) {
        const Graph graph = parse_text_graph(R"(graph experts
input %x f32[batch,256]
weight %w f32[8,256,128]
%y f32[batch,128] = matmul(%x,%w) {experts=8 experts_per_token=2 cards=8 groups=)" +
                                             std::to_string(groups) + "}\noutput %y\n");
        const Schedule schedule =
            lower(graph, device_spec(device), {.precision = precision, .libraries = {.engine = version}},
                  framework_model(framework).traits);
        return std::get<kernels::GroupedGemmShape>(schedule.kernels.back().shape);
    };
    CHECK(experts("b200", "sglang", 5, Precision::fp8_block).scaled_outside);
    CHECK(experts("b200", "tensorrt-llm", 102, Precision::fp8_block).scaled_outside);
    CHECK(experts("b200", "vllm", 14, Precision::fp8_block).scaled_outside);
    CHECK_FALSE(experts("b200", "sglang", 5, Precision::fp8).scaled_outside);
    CHECK_FALSE(experts("h200-sxm-141gb", "sglang", 5, Precision::fp8_block).scaled_outside);
    CHECK_FALSE(experts("rtx-pro-6000-blackwell-server", "sglang", 5, Precision::fp8_block).scaled_outside);
    for (const auto& release : {std::pair{"vllm", 12}, std::pair{"tensorrt-llm", 101}}) {
        const auto [framework, version] = release;
        CAPTURE(release.first);
        const auto padded = experts("b200", framework, version, Precision::fp8_block);
        CHECK_FALSE(padded.scaled_outside);
        CHECK(padded.padding_cards == 8);
    }
    CHECK(experts("b200", "tensorrt-llm", 102, Precision::fp8_block, 8).padding_cards == 1);
    CHECK(experts("b200", "sglang", 5, Precision::fp8_block, 8).padding_cards == 0);
    CHECK(experts("h200-sxm-141gb", "tensorrt-llm", 102, Precision::fp8_block, 8).padding_cards == 0);
    // TensorRT-LLM's own experts on Hopper are CUTLASS's.
    CHECK(experts("h200-sxm-141gb", "vllm", 12, Precision::fp8_block).padding_cards == 8);
    CHECK(experts("h200-sxm-141gb", "tensorrt-llm", 101, Precision::fp8_block).padding_cards == 0);
}

TEST_CASE("the kernels of an engine's experts sort, quantise and activate rows themselves") {
    struct Kernels {
        std::size_t count;
        std::int64_t quantised;           // rows that the first kernel quantises; 0: none
        double sorted, activated;         // bytes that the kernels before the products write
        kernels::GroupedGemmShape first;  // product
        MathPath path;
    };
    const auto kernels = [](const char* device, const char* framework, int version, Precision precision,
                            const char* more = "", MoeBackend backend = MoeBackend::by_default) {
        const Graph graph = parse_text_graph(R"(graph experts
input %x f32[batch,256]
weight %w f32[8,256,128]
weight %v f32[8,64,256]
%order i64[pairs], %rows f32[pairs,256] = sort(%x) {axis=1 function="topk"}
%a f32[pairs,128] = matmul(%rows,%w) {experts=8 experts_per_token=2 gated=1)" +
                                             std::string(more) + R"(}
%h f32[pairs,64] = pointwise(%a) {function="silu"}
%y f32[pairs,256] = matmul(%h,%v) {experts=8 experts_per_token=2)" +
                                             more + R"(}
output %y
output %order
)");
        const Schedule schedule =
            lower(graph, device_spec(device),
                  {.precision = precision, .libraries = {.engine = version}, .moe_backend = backend},
                  framework_model(framework).traits);
        const BoundShapes bound = bind(graph, {{"batch", 3}, {"pairs", 6}});
        Kernels result{.count = schedule.kernels.size()};
        const auto bits = [&](const Kernel& kernel, TensorId tensor) {
            if (std::ranges::count(kernel.writes, tensor) == 0) return 0.0;
            return double(bits_of(kernel.written_type.value_or(schedule.storage[tensor])));
        };
        for (const Kernel& kernel : schedule.kernels) {
            const KernelShape shape = kernel_shape(graph, schedule, kernel, bound);
            const auto* quantize = std::get_if<kernels::QuantizeShape>(&shape);
            if (quantize != nullptr && result.quantised == 0) result.quantised = quantize->rows;
            const Op& op = graph.ops[kernel.op];
            if (op.kind == OpKind::sort) result.sorted = bits(kernel, op.outputs[1]);
            if (op.kind == OpKind::pointwise) result.activated = bits(kernel, op.outputs[0]);
            if (const auto* product = std::get_if<kernels::GroupedGemmShape>(&shape); product && product->gated) {
                result.first = *product;
                result.path = kernel.path;
            }
        }
        return result;
    };
    using enum Precision;
    SUBCASE("TensorRT-LLM's own read rows by index and activate, but with DeepSeek's scales not") {
        const auto fp4 = kernels("b200", "sglang", 5, nvfp4), blocks = kernels("b200", "sglang", 5, fp8_block);
        CHECK(fp4.count == 4);  // sorts, quantises, multiplies twice
        CHECK(fp4.quantised == 3);
        CHECK(fp4.sorted == 0);
        CHECK(blocks.count == 5);
        CHECK(blocks.activated == 8);
        CHECK_FALSE(fp4.first.sorted);
    }
    SUBCASE("Triton's read rows by index and leave the activation to others") {
        const auto triton = kernels("h200-sxm-141gb", "sglang", 5, fp8);
        CHECK(triton.count == 6);
        CHECK(triton.quantised == 3);
        CHECK(triton.sorted == 0);
        CHECK(triton.activated == 16);
        CHECK_FALSE(triton.first.sorted);
    }
    SUBCASE("before CUTLASS's, the kernels that activate write 8 or 4 bits") {
        const auto on_hopper = kernels("h200-sxm-141gb", "tensorrt-llm", 102, fp8);
        CHECK(on_hopper.count == 5);
        CHECK(on_hopper.quantised == 3);
        CHECK(on_hopper.sorted == 0);
        CHECK(on_hopper.activated == 8);
        CHECK_FALSE(on_hopper.first.sorted);
        const auto groups = kernels("b200", "tensorrt-llm", 102, nvfp4, " groups=8");
        CHECK(groups.count == 5);
        CHECK(groups.activated == 4);
        CHECK(groups.first.in_fp4_cutlass);
        CHECK(groups.first.sorted);
        CHECK(kernels("h200-sxm-141gb", "tensorrt-llm", 102, w4a16).first.sorted);  // in Triton's kernels
        CHECK(kernels("b200", "tensorrt-llm", 102, nvfp4).first.in_fp4_cutlass);
        using enum MoeBackend;
        CHECK_FALSE(kernels("b200", "tensorrt-llm", 102, nvfp4, "", trtllm).first.in_fp4_cutlass);
        CHECK(kernels("b200", "tensorrt-llm", 102, nvfp4, " groups=8", trtllm).first.in_fp4_cutlass);
        CHECK_FALSE(kernels("b200", "tensorrt-llm", 102, nvfp4, " mxfp4=1").first.in_fp4_cutlass);
        const auto mxfp4 = kernels("b200", "tensorrt-llm", 102, nvfp4, " mxfp4=1", cutlass);
        CHECK(mxfp4.first.in_fp4_cutlass);
        CHECK(mxfp4.first.is_mxfp4);
        CHECK(mxfp4.path == MathPath::fp8_tensor);
        CHECK_FALSE(kernels("rtx-pro-6000-blackwell-server", "vllm", 14, nvfp4).first.in_fp4_cutlass);
    }
    SUBCASE("weights in 4 bits run in Marlin's kernel, GPT-OSS's on Hopper only if asked") {
        const char* gpt_oss = " mxfp4=1";
        CHECK(kernels("h200-sxm-141gb", "vllm", 18, w4a16).first.in_marlin);
        CHECK_FALSE(kernels("h200-sxm-141gb", "vllm", 18, w4a16, gpt_oss).first.in_marlin);
        CHECK_FALSE(kernels("h200-sxm-141gb", "vllm", 18, w4a16, gpt_oss).first.widens_apart);
        CHECK(kernels("h200-sxm-141gb", "vllm", 19, w4a16, gpt_oss).first.widens_apart);
        CHECK(kernels("h200-sxm-141gb", "vllm", 19, w4a16, gpt_oss).first.sorted);
        const auto asked = kernels("h200-sxm-141gb", "vllm", 18, w4a16, gpt_oss, MoeBackend::marlin);
        CHECK(asked.first.in_marlin);
        CHECK(asked.first.is_mxfp4);
        CHECK(kernels("l40s", "sglang", 5, w4a16, gpt_oss).first.in_marlin);
        CHECK_FALSE(kernels("h200-sxm-141gb", "tensorrt-llm", 102, w4a16).first.in_marlin);
        const auto workstation = kernels("rtx-pro-6000-blackwell-server", "vllm", 18, nvfp4, gpt_oss);
        CHECK(workstation.first.in_marlin);
        CHECK(workstation.path == MathPath::fp16_tensor);
        CHECK(workstation.quantised == 0);
        CHECK_FALSE(kernels("rtx-pro-6000-blackwell-server", "vllm", 18, nvfp4).first.in_marlin);
    }
    SUBCASE("experts with block scales under TensorRT-LLM on Hopper, and those without an engine, do none of it") {
        const auto blocks = kernels("h200-sxm-141gb", "tensorrt-llm", 102, fp8_block);
        CHECK(blocks.count == 6);
        CHECK(blocks.quantised == 6);
        CHECK(blocks.first.sorted);
        CHECK(kernels("h200-sxm-141gb", "pytorch-eager", 0, fp8).quantised == 6);
    }
    SUBCASE("mxfp4 multiplies at the rate of fp8, in groups as well") {
        const auto alone = kernels("b200", "vllm", 15, nvfp4, " mxfp4=1");
        CHECK(alone.first.is_mxfp4);
        CHECK(alone.path == MathPath::fp8_tensor);
        CHECK(kernels("b200", "tensorrt-llm", 102, nvfp4, " groups=8 mxfp4=1").first.is_mxfp4);
        CHECK(kernels("b200", "vllm", 15, nvfp4).path == MathPath::fp4_tensor);
    }
}

TEST_CASE("a precision that a device lacks is an error that names both and what there is") {
    const Graph graph = parse_text_graph(layers);
    try {
        static_cast<void>(lowered(graph, "a100-sxm4-80gb", Precision::nvfp4));
        FAIL("an A100 has no units for it");
    } catch (const Error& error) {
        const std::string message = error.what();
        CHECK(message.find("A100") != std::string::npos);
        CHECK(message.find("nvfp4") != std::string::npos);
        CHECK(message.find("bf16, amp, amp_cached, int8, w8a16, w4a16") != std::string::npos);
        CHECK(error.code() == ErrorCode::usage);
    }
}

TEST_CASE("a prediction says what a precision leaves as it is") {
    const Graph graph = parse_text_graph(layers);
    Predictor predictor(graph, device_profile("b200"), framework_profile("pytorch-eager"),
                        {.precision = Precision::nvfp4});
    const auto warnings = predictor.predict({{"batch", 4}}).warnings;
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0] == "nvfp4: linear layers and experts; embeddings, norms, attention and heads stay bf16");
}

TEST_CASE("routers, gates and heads keep their weights, layers with longer names do not") {
    for (const std::string name :
         {"lm_head", "gate", "router", "shared_expert_gate", "gate_proj", "router_mlp", "proj"}) {
        const Graph graph = parse_text_graph(
            "graph g\ninput %x f32[batch,64]\nweight %w f32[128,64]\nweight %v f32[128,128]\n"
            "%y f32[batch,128] = linear(%x,%w) \"aten::linear\" @model.layers.0.mlp." +
            name + "\n%z f32[batch,128] = linear(%y,%v)\noutput %z\n");
        CHECK(graph.ops[0].module.ends_with(name));
        const Schedule schedule = lowered(graph, "h100-sxm5-80gb", Precision::w4a16);
        const bool keeps = name == "lm_head" || name == "gate" || name == "router" || name == "shared_expert_gate";
        CHECK_MESSAGE((weight_precision(schedule.kernels.at(0).shape) != Precision::w4a16) == keeps, name);
        const Schedule of_file = lowered(graph, "h100-sxm5-80gb", Precision::q4_k_m);
        const Precision stored = weight_precision(of_file.kernels.at(0).shape);
        CHECK((stored == Precision::q4_k_m) == !keeps);
        CHECK((stored == Precision::q6_k) == (name == "lm_head"));  // llama-quant.cpp
    }
}

TEST_CASE("files of GGUF keep the layers that a checkpoint leaves wide in q8_0") {
    const Graph graph = parse_text_graph(
        "graph g\ninput %x f32[batch,64]\nweight %w f32[128,64]\nweight %v f32[128,128]\n"
        "%y f32[batch,128] = linear(%x,%w) {weights=\"nvfp4\"}\n%z f32[batch,128] = linear(%y,%v)\noutput %z\n");
    for (const auto& [asked, rest] :
         {std::pair(Precision::mxfp4, Precision::q8_0), std::pair(Precision::q4_k_m, Precision::q8_0),
          std::pair(Precision::w4a16, Precision::fp32)}) {
        const Schedule schedule = lowered(graph, "h100-sxm5-80gb", asked);
        CHECK(weight_precision(schedule.kernels.at(0).shape) == asked);
        CHECK(weight_precision(schedule.kernels.at(1).shape) == rest);
    }
    CHECK(precision_spec(Precision::mxfp4).weight_bytes() == doctest::Approx(4.25 / 8));
    CHECK(precision_spec(Precision::q3_k_m).weight_bytes() == doctest::Approx(4.0 / 8));
    CHECK(precision_spec(Precision::iq4_xs).weight_bytes() == doctest::Approx(4.46 / 8).epsilon(0.01));
}

TEST_CASE("a framework that computes in f32 stores activations so, weights in halves") {
    const Graph graph = parse_text_graph(layers);
    for (const char* framework : {"llama.cpp", "pytorch-eager", "vllm"}) {
        const LoweringTraits& traits = framework_model(framework).traits;
        const Schedule schedule = lower(graph, device_spec("a100-sxm4-80gb"), {.precision = Precision::fp16}, traits);
        for (TensorId id = 0; id < graph.tensors.size(); ++id) {
            const bool wide = traits.wide_activations && graph.tensors[id].role == TensorRole::activation;
            CHECK(schedule.storage[id] == (wide ? DType::f32 : DType::f16));
        }
    }
    CHECK(framework_model("llama.cpp").traits.wide_activations);
}
