#include <doctest/doctest.h>

#include "predictors/kernels/kernel_models.hpp"
#include "tests/approx.hpp"

using namespace ftax;

namespace {

KernelModels models_of(const char* device) {
    const DeviceProfile profile = device_profile(device);
    return {profile.device, kernel_parameters(profile)};
}

}  // namespace

TEST_CASE("a kernel's explanation agrees with its plan and places it in the roofline") {
    const auto models = models_of("t4");
    const kernels::GemmShape shape{.m = 1024, .n = 768, .k = 512, .linear = true};
    const KernelDetail detail = kernel_detail(models, shape, MathPath::fp32);
    const auto planned = models.plan(shape, MathPath::fp32);
    CHECK(detail.seconds == planned.seconds);
    CHECK(detail.bound == planned.bound());
    CHECK(detail.path == "fp32");
    CHECK(detail.flops == 2.0 * 1024 * 768 * 512);
    CHECK(detail.bytes == 4.0 * (1024 * 512 + 768 * 512 + 1024 * 768));
    const auto& rates = models.at(MathPath::fp32);
    CHECK(detail.ridge == approx(rates.flops_per_s / rates.bandwidth_bytes_per_s));
    CHECK(detail.waves > 0);
    CHECK(detail.seconds > detail.compute_s * 0.99);
}

TEST_CASE("a kernel's ridge is that of the units that it runs on") {
    const auto models = models_of("a100-pcie-40gb");
    for (const MathPath path : {MathPath::fp32, MathPath::tf32, MathPath::fp16_tensor, MathPath::int8_tensor}) {
        const kernels::GemmShape shape{
            .m = 4096, .n = 4096, .k = 4096, .element_bytes = path < MathPath::fp16_tensor ? 4 : 2, .linear = true};
        const auto& rates = models.at(path);
        CHECK(kernel_detail(models, shape, path).ridge == approx(rates.flops_per_s / rates.bandwidth_bytes_per_s));
    }
}

TEST_CASE("an explanation names the alternatives that were passed over") {
    const auto turing = models_of("t4");
    const kernels::ConvShape conv{.batch = 8,
                                  .in_channels = 64,
                                  .out_channels = 64,
                                  .in_height = 56,
                                  .in_width = 56,
                                  .out_height = 56,
                                  .out_width = 56,
                                  .kernel_h = 3,
                                  .kernel_w = 3};
    const KernelDetail detail = kernel_detail(turing, conv, MathPath::fp32);
    for (const char* algorithm : {"implicit-gemm", "winograd-fused", "winograd-nonfused"}) {
        CHECK((detail.name + detail.reason).find(algorithm) != std::string::npos);
    }
    const kernels::GemmShape batched{.batch = 16, .m = 128, .n = 128, .k = 64};
    CHECK(kernel_detail(models_of("a100-pcie-40gb"), batched, MathPath::fp32).name == "gemm 128x128");
    CHECK(kernel_detail(turing, batched, MathPath::fp32).reason.find("of 3 tiles") != std::string::npos);
}

TEST_CASE("the bytes of a kernel are those of its operands and its result") {
    const auto turing = models_of("t4"), ampere = models_of("a100-pcie-40gb"), hopper = models_of("h100-sxm5-80gb");
    const auto bytes = [](const KernelModels& models, const KernelShape& shape, MathPath path) {
        return kernel_detail(models, shape, path).bytes;
    };
    const MathPath cores = MathPath::fp32, tensor = MathPath::fp16_tensor;
    const kernels::GemmShape layer{.batch = 3, .m = 128, .n = 64, .k = 32, .linear = true};
    const double operand = 3 * 128 * 32, result = 3 * 128 * 64;
    CHECK(bytes(turing, layer, cores) == 4 * (operand + 64 * 32 + result));
    kernels::GemmShape product = layer;
    product.linear = false;
    CHECK(bytes(turing, product, cores) == 4 * (operand + 3 * 64 * 32 + result));
    const kernels::ConvShape conv{.batch = 2,
                                  .in_channels = 8,
                                  .out_channels = 12,
                                  .groups = 4,
                                  .in_height = 10,
                                  .in_width = 9,
                                  .out_height = 8,
                                  .out_width = 7,
                                  .kernel_h = 3,
                                  .kernel_w = 3};
    CHECK(bytes(turing, conv, cores) == 4.0 * (2 * 8 * 10 * 9 + 2 * 12 * 8 * 7 + 12 * 2 * 9));
    // Weights of the state, a step's product of the input, which another kernel makes, and its new state.
    CHECK(bytes(turing, kernels::RecurrentShape{.steps = 5, .batch = 2, .hidden = 16, .gates = 4}, cores) ==
          4.0 * (4 * 16 * 16 + 5 * 2 * (4 * 16 + 16)));
    // Seven tokens of two experts each leave some of the eight without weights to read.
    const double touched = kernels::mixture::touched_experts(7, 2, 8, kernels::mixture::spread_of_texts);
    CHECK(touched > 5);
    CHECK(touched < 8);
    for (const bool gated : {false, true}) {
        const kernels::MixtureShape mixture{
            .tokens = 7, .hidden = 32, .width = 48, .per_token = 2, .experts = 8, .gated = gated};
        CHECK(bytes(hopper, mixture, tensor) == approx(2.0 * (2 * 7 * 32 + (gated ? 3 : 2) * touched * 32 * 48)));
    }
    const kernels::GroupedGemmShape grouped{.experts = 8, .per_token = 2, .rows = 14, .n = 48, .k = 32};
    CHECK(bytes(hopper, grouped, tensor) == approx(2.0 * (14 * 32 + 14 * 48 + touched * 48 * 32)));
    CHECK(bytes(hopper, kernels::QuantizeShape{.rows = 6, .columns = 20}, tensor) == 6 * 20 * (2 + 1));
    CHECK(bytes(turing, kernels::MemoryShape{.elements = 10, .read_bytes = 30, .write_bytes = 12}, cores) == 42);
    const kernels::AttentionShape attention{.batch = 2, .heads = 4, .q_length = 5, .kv_length = 9, .kv_heads = 2};
    CHECK(bytes(ampere, attention, tensor) == 2.0 * 64 * (2 * 4 * 5 * 2 + 2 * 2 * 9 * 2));
}

TEST_CASE("a kernel is scaled by the factor of what it does, on the cores that do it") {
    const auto conv = [](std::int64_t in, std::int64_t out, std::int64_t groups, std::int64_t window, MathPath path) {
        kernels::ConvShape s{.in_channels = in, .out_channels = out, .groups = groups};
        s.kernel_h = s.kernel_w = window;
        return factor_of(s, path);
    };
    const MathPath cores = MathPath::fp32, tensor = MathPath::fp16_tensor;
    CHECK(conv(8, 8, 1, 3, cores) == Factor::conv_spatial);
    CHECK(conv(8, 8, 1, 3, tensor) == Factor::conv_spatial_tensor);
    CHECK(conv(8, 8, 1, 1, cores) == Factor::conv_pointwise);
    CHECK(conv(8, 8, 1, 1, tensor) == Factor::conv_pointwise_tensor);
    CHECK(conv(8, 8, 4, 3, cores) == Factor::conv_grouped);
    CHECK(conv(8, 8, 8, 3, cores) == Factor::conv_depthwise);
    CHECK(conv(8, 16, 8, 3, cores) == Factor::conv_depthwise);
    CHECK(conv(8, 8, 8, 5, cores) == Factor::conv_depthwise_wide);
    CHECK(factor_of(kernels::GemmShape{}, cores) == Factor::gemm);
    CHECK(factor_of(kernels::GemmShape{}, tensor) == Factor::gemm_tensor);
    CHECK(factor_of(kernels::GroupedGemmShape{}, cores) == Factor::gemm);
    CHECK(factor_of(kernels::AttentionShape{}, tensor) == Factor::attention);
    const auto memory = [&](kernels::MemoryClass cls) { return factor_of(kernels::MemoryShape{.cls = cls}, cores); };
    CHECK(memory(kernels::MemoryClass::pool) == Factor::pool);
    CHECK(memory(kernels::MemoryClass::softmax) == Factor::normalization);
    CHECK(memory(kernels::MemoryClass::layer_norm) == Factor::normalization);
    CHECK(memory(kernels::MemoryClass::reduce) == Factor::elementwise);
}
