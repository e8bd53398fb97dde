#include "predictors/kernels/mixture.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <utility>

#include "ftax/precision.hpp"
#include "predictors/operator_model.hpp"
#include "tests/approx.hpp"
#include "tests/card_models.hpp"
#include "tests/start_values.hpp"

using namespace ftax;
using namespace ftax::kernels;
using namespace ftax::test;

TEST_CASE("tokens touch their own experts first, all of them in the end") {
    CHECK(mixture::touched_experts(1, 8, 128, 1.0) == approx(8));
    CHECK(mixture::touched_experts(16, 8, 128, 1.0) == approx(128 * (1 - std::pow(1 - 8.0 / 128, 16))));
    CHECK(mixture::touched_experts(10000, 8, 128, 1.0) == approx(128));
    CHECK(mixture::touched_experts(1, 8, 8, 1.3) == 8);
    CHECK(mixture::touched_experts(1, 4, 128, 1.3) == 4);
    CHECK(mixture::touched_experts(2, 4, 128, 1.3) == 8);
}

TEST_CASE("mixtures of experts take what a study of the same rows predicts") {
    // Source: reference predictions of a fit of its own (another language), µs.
    struct Reference {
        const char* device;
        Precision precision;
        std::int64_t tokens, hidden, inter, topk, experts;
        double us;
        const char* kernel = "";
    };
    using enum Precision;
    constexpr const char* cutlass = "vllm_modeloptfp8moe_flashinfer_cutlass_flashinferexperts";
    const Reference references[]{
        {"h100-sxm5-80gb", bf16, 12288, 4096, 1536, 8, 128, 7547},
        {"h100-sxm5-80gb", bf16, 8192, 2688, 1856, 6, 128, 2346},
        {"h100-sxm5-80gb", fp8, 2048, 6144, 4096, 2, 8, 2204, cutlass},
        {"l40s", fp8, 2048, 4096, 768, 8, 128, 2621},
        {"b200", bf16, 64, 3072, 512, 8, 256, 356},
        {"b200", fp8, 2048, 6144, 640, 8, 160, 450},
        {"rtx-pro-6000-blackwell-server", bf16, 128, 4096, 384, 8, 128, 899},
        {"rtx-pro-6000-blackwell-server", fp8, 1024, 4096, 512, 8, 256, 1382},
    };
    for (const Reference& r : references) {
        CAPTURE(r.device);
        CAPTURE(r.us);
        const OperatorModel model(device_profile(r.device), call_host_profile(r.device));
        const auto predicted = model.predict({.gpu = r.device,
                                              .op = "moe",
                                              .precision = r.precision,
                                              .shape = {{"tokens", r.tokens},
                                                        {"hidden", r.hidden},
                                                        {"inter", r.inter},
                                                        {"topk", r.topk},
                                                        {"experts", r.experts}},
                                              .kernel = r.kernel,
                                              .mode = "device_hot"});
        REQUIRE(predicted);
        CHECK(predicted->latency_s * 1e6 == approx(r.us).epsilon(0.25));
    }
}

TEST_CASE("few tokens read experts of eight bits in half the time that those of 16 take") {
    for (const char* device : {"l40s", "h100-sxm5-80gb", "h200-sxm-141gb", "b200"}) {
        for (const Precision precision : {Precision::fp8, Precision::int8}) {
            if (!runs(device_spec(device), precision_spec(precision))) continue;
            CAPTURE(device);
            CAPTURE(name_of(precision));
            const auto models = fitted(device);
            GroupedGemmShape s{.experts = 8, .per_token = 2, .rows = 16, .n = 28672, .k = 4096};
            const double half_s = models.plan(s, MathPath::fp16_tensor).seconds;
            s.operands = precision;
            const double narrow_s = models.plan(s, precision_spec(precision).path).seconds;
            CHECK(narrow_s == approx(0.5 * half_s).epsilon(0.15));
        }
    }
}

TEST_CASE("no mixture beats peak or the bytes of the experts it touches, and more tokens take no less") {
    for (const char* device : {"v100-sxm2-32gb", "a100-sxm4-80gb", "l40s", "h100-sxm5-80gb", "b200"}) {
        const auto models = fitted(device);
        const MathPath path = MathPath::fp16_tensor;
        double before_s = 0;
        for (std::int64_t tokens = 1; tokens < 100000; tokens = tokens * 3 / 2 + 1) {
            CAPTURE(device);
            CAPTURE(tokens);
            const MixtureShape s{.tokens = tokens, .hidden = 4096, .width = 1536, .per_token = 8, .experts = 128};
            const auto planned = models.plan(s, path);
            CHECK(planned.seconds >=
                  flops(s) / (models.at(path).peak_flops_per_s * models.parameters.tensor_gemm.clock));
            CHECK(planned.seconds >= 8 * 3 * 2.0 * 4096 * 1536 / models.at(path).dram_bytes_per_s * 0.9);
            CHECK(planned.seconds >= before_s * (1 - 1e-9));
            before_s = planned.seconds;
        }
    }
}

TEST_CASE("padded experts compute tiles without tokens, for which they read no weights") {
    const auto models = fitted("h100-sxm5-80gb");
    GroupedGemmShape s{
        .experts = 32, .per_token = 2, .rows = 16, .n = 3072, .k = 4096, .operands = Precision::fp8_block};
    const MathPath path = precision_spec(s.operands).path;
    const auto alone = models.plan(s, path);
    s.padded = 33 * padded_tile_rows;
    const auto padded = models.plan(s, path);
    CHECK(padded.tile.rows == padded_tile_rows);
    CHECK(padded.blocks * padded.tile.rows * padded.tile.columns == approx(s.padded * 3072));
    CHECK(flops(s) == 2.0 * 16 * 3072 * 4096);  // those of tokens
    CHECK(padded.seconds > 2 * s.padded * 3072 * 4096 / models.at(path).peak_flops_per_s);
    // Its activations are more, its weights are those of the experts with tokens.
    CHECK(padded.memory_s - alone.memory_s < s.padded * (4096 + 2 * 3072) / models.at(path).dram_bytes_per_s * 1.3);
    // Tiles without tokens add what they compute.
    s.padded *= 2;
    CHECK(models.plan(s, path).seconds - padded.seconds > 0.8 * padded.compute_s);
    s.gated = true;
    const double added = (s.padded - 16) * 3072 * 4.5 / models.at(path).dram_bytes_per_s;
    const double gated_s = models.plan(s, path).seconds;
    s.gated = false;
    CHECK(gated_s - models.plan(s, path).seconds == approx(added));
}

TEST_CASE("groups without tensor cores are a batch of equal products") {
    const auto models = fitted("p100-pcie-16gb");
    const GroupedGemmShape s{.experts = 8, .per_token = 2, .rows = 100, .n = 512, .k = 256, .element_bytes = 4};
    const GemmShape batch{.batch = 8, .m = 13, .n = 512, .k = 256, .element_bytes = 4};
    CHECK(as_batch(s) == batch);
    CHECK(models.plan(s, MathPath::fp32).seconds == models.plan(batch, MathPath::fp32).seconds);
}

TEST_CASE("a mixture has the blocks of both its products, and weights out of the L2 take longer") {
    auto p = start_values<TensorGemmParameters>();
    auto q = start_values<MixtureParameters>();
    const DeviceProfile profile = device_profile("h100-sxm5-80gb");
    const KernelModels models(profile.device, kernel_parameters(profile));
    const DeviceRates& device = models.at(MathPath::fp16_tensor);
    const MixtureShape shape{.tokens = 4096, .hidden = 1024, .width = 512, .per_token = 2, .experts = 8};
    const GroupedGemmShape up{.experts = 8, .per_token = 2, .rows = 8192, .n = 2 * 512, .k = 1024};
    const GroupedGemmShape down{.experts = 8, .per_token = 2, .rows = 8192, .n = 1024, .k = 512};
    const auto blocks = [&](const GroupedGemmShape& s) { return mixture::grouped_time(s, device, p, q).blocks; };
    CHECK(plan(shape, device, p, q).blocks == blocks(up) + blocks(down));  // of evenly spread tokens
    GroupedGemmShape small{.experts = 8, .per_token = 2, .rows = 64, .n = 256, .k = 256, .weight_reuse_bytes = 0};
    const double kept_s = plan(small, device, p, q).memory_s;
    small.weight_reuse_bytes = 1e18;
    CHECK(plan(small, device, p, q).memory_s > 1.2 * kept_s);
}

TEST_CASE("experts whose sums are scaled outside of the tensor cores take what a public table measured on a B200") {
    // 32 experts of DeepSeek-V3. A single token takes 203 µs; routing, activation and the weighted sum are in all of
    // them.
    constexpr double of_a_token_us = 203, tuned = 1.13;
    const auto models = fitted("b200");
    const auto products_us = [&](std::int64_t rows, bool scaled_outside) {
        GroupedGemmShape s{.experts = 32,
                           .per_token = 1,
                           .rows = rows,
                           .n = 4096,
                           .k = 7168,
                           .operands = Precision::fp8_block,
                           .scaled_outside = scaled_outside,
                           .prepared = true};
        double seconds = models.plan(s, MathPath::fp8_tensor).seconds;
        s.n = 7168;
        s.k = 2048;
        seconds += models.plan(s, MathPath::fp8_tensor).seconds;
        return seconds * 1e6;
    };
    for (const auto& [rows, measured_us] : {std::pair{8830, 1786.8}, std::pair{13428, 2409.7}}) {
        CHECK(products_us(rows, true) == approx(0.85 / tuned * (measured_us - of_a_token_us)).epsilon(0.1));
        CHECK(products_us(rows, false) < 0.55 * products_us(rows, true));
    }
    CHECK(products_us(32, true) == approx(products_us(32, false)).epsilon(0.02));  // bound by the weights
}

TEST_CASE("the efficiency of grouped products caps the rate that the power limit leaves") {
    auto p = start_values<TensorGemmParameters>();
    auto q = start_values<MixtureParameters>();
    const DeviceProfile profile = device_profile("h100-sxm5-80gb");
    DeviceRates device = KernelModels(profile.device, kernel_parameters(profile)).at(MathPath::fp16_tensor);
    const GroupedGemmShape s{.experts = 8, .per_token = 2, .rows = 65536, .n = 4096, .k = 4096, .prepared = true};
    const auto compute_s = [&](double efficiency) {
        q.efficiency = efficiency;
        return plan(s, device, p, q).compute_s;
    };
    device.power_limit_w *= 100;
    CHECK(compute_s(0.5) == approx(2 * compute_s(1)).epsilon(0.1));
    device.power_limit_w /= 1000;
    CHECK(compute_s(0.5) == compute_s(1));
}

TEST_CASE("grouped products of narrow operands have the ratios of single ones") {
    auto models = fitted("b200");
    const GroupedGemmShape s{
        .experts = 8, .per_token = 2, .rows = 65536, .n = 4096, .k = 4096, .operands = Precision::nvfp4};
    const double before_s = models.plan(s, MathPath::fp4_tensor).seconds;
    models.parameters.quantized.of[static_cast<std::size_t>(QuantizedKernels::nvfp4)].efficiency /= 8;
    CHECK(models.plan(s, MathPath::fp4_tensor).seconds > 1.5 * before_s);
}

TEST_CASE("experts in mxfp4 read blocks of 32 values and are padded to 256 columns; CUTLASS fills its waves slowly") {
    const auto models = fitted("b200");
    GroupedGemmShape s{.experts = 128,
                       .per_token = 4,
                       .rows = 2048,
                       .n = 2 * 2880,
                       .k = 2880,
                       .operands = Precision::nvfp4,
                       .gated = true};
    const auto plain = models.plan(s, MathPath::fp8_tensor);
    s.is_mxfp4 = true;
    const auto mxfp4 = models.plan(s, MathPath::fp8_tensor);
    const double weights = (0.5 + 1.0 / 32) / (0.5 + 1.0 / 16) * 3072 * 3072 / (2880 * 2880);
    CHECK(mxfp4.memory_s / plain.memory_s == approx(weights).epsilon(0.03));
    s.is_mxfp4 = false;
    s.rows = 128;
    const auto filled = models.plan(s, MathPath::fp4_tensor);
    s.in_fp4_cutlass = true;
    CHECK(models.plan(s, MathPath::fp4_tensor).compute_s > 1.5 * filled.compute_s);
    const auto beside_s = [&](std::int64_t rows) {  // beyond the product, for rows that CUTLASS's kernels process
        s.rows = rows;
        const auto plan = models.plan(s, MathPath::fp4_tensor);
        return plan.seconds - tensor_gemm::overlap(plan.compute_s, plan.memory_s);
    };
    CHECK(beside_s(40'000) - beside_s(20'000) == approx(20'000 * 0.45e-6 / 148));
}

TEST_CASE(
    "Marlin's kernel has the instructions of older generations, beside which it widens weights, and pads experts") {
    const GroupedGemmShape plain{.experts = 32,
                                 .per_token = 4,
                                 .rows = 65'536,
                                 .n = 2 * 4096,
                                 .k = 4096,
                                 .operands = Precision::w4a16,
                                 .prepared = true,
                                 .gated = true};
    const auto compute_s = [](const char* device, const GroupedGemmShape& s) {
        return fitted(device).plan(s, MathPath::fp16_tensor).compute_s;
    };
    GroupedGemmShape marlin = plain;
    marlin.in_marlin = true;
    CHECK(compute_s("h100-sxm5-80gb", marlin) > 1.3 * compute_s("h100-sxm5-80gb", plain));
    CHECK(compute_s("l40s", marlin) == approx(compute_s("l40s", plain)).epsilon(0.03));
    GroupedGemmShape padded = marlin;
    padded.n = 2 * 360;  // GPT-OSS on eight cards: 384 and 3072
    padded.k = 2880;
    const double before = compute_s("l40s", padded);
    padded.is_mxfp4 = true;
    CHECK(compute_s("l40s", padded) > 1.05 * before);
}

TEST_CASE("tokens are spread unevenly over experts, whose last tiles are half empty") {
    const auto models = fitted("b200");
    const auto blocks = [&](std::int64_t rows) {
        const auto plan = models.plan(GroupedGemmShape{.experts = 64, .per_token = 1, .rows = rows, .n = 4096, .k = 64},
                                      MathPath::bf16_tensor);
        return plan.blocks * double(plan.tile.columns) / 4096;
    };
    const auto plan = models.plan(GroupedGemmShape{.experts = 64, .per_token = 1, .rows = 1 << 20, .n = 4096, .k = 64},
                                  MathPath::bf16_tensor);
    const double full = (1 << 20) / double(plan.tile.rows);
    CHECK(blocks(1 << 20) == approx(full + 32).epsilon(0.01));
    CHECK(blocks(64) <= 64);
}
