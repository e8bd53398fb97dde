#include "predictors/kernels/quantized.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "predictors/operator_model.hpp"
#include "tests/approx.hpp"
#include "tests/card_models.hpp"

using namespace ftax;
using namespace ftax::kernels;
using namespace ftax::test;

namespace {

GemmShape layer(std::int64_t m, std::int64_t n, std::int64_t k, Precision operands) {
    return {.m = m, .n = n, .k = k, .element_bytes = 2, .linear = true, .operands = operands};
}

/// Time of a product with the kernel that quantises its activations.
double seconds(const KernelModels& models, std::int64_t m, std::int64_t n, std::int64_t k, Precision operands) {
    const PrecisionSpec& precision = precision_spec(operands);
    double time_s = within_power(models.plan(layer(m, n, k, operands), precision.path));
    if (precision.quantizes_activations()) {
        time_s += models.plan(QuantizeShape{m, k, operands}, precision.path).seconds;
    }
    return time_s;
}

constexpr std::array devices{"t4",   "a100-sxm4-80gb", "l40s",     "h100-sxm5-80gb",
                             "b200", "gb300",          "rtx-4090", "rtx-pro-6000-blackwell-server"};

}  // namespace

TEST_CASE("quantised products take what a study of the same rows predicts") {
    // Source: reference predictions of a fit of its own (another language, other tiles), µs.
    struct Reference {
        const char* device;
        Precision precision;
        std::int64_t m, n, k, weights;
        double us;
    };
    using enum Precision;
    const Reference references[]{
        {"b200", fp8, 1024, 7168, 10240, 6, 76.3},
        {"h100-sxm5-80gb", fp8, 6, 8192, 16384, 6, 56.2},
        {"l40s", fp8, 96, 4096, 3584, 6, 23.8},
        {"rtx-pro-6000-blackwell-server", fp8, 2304, 65536, 3584, 6, 1357},
        {"b200", fp8_block, 12, 768, 6144, 5, 10.4},
        {"b200", fp8_block, 4097, 10240, 7168, 2, 230},
        {"h100-sxm5-80gb", fp8_block, 3, 51200, 3584, 1, 68.2},
        {"l40s", fp8_block, 4353, 2560, 8192, 5, 891},
        {"rtx-pro-6000-blackwell-server", fp8_block, 4353, 5120, 2560, 5, 313},
        {"b200", nvfp4, 13, 10240, 5120, 1, 11.7},
        {"rtx-pro-6000-blackwell-server", nvfp4, 14, 2048, 512, 1, 8.6},
    };
    for (const Reference& r : references) {
        CAPTURE(r.device);
        CAPTURE(r.us);
        const OperatorModel model(device_profile(r.device), call_host_profile(r.device));
        const auto predicted = model.predict({.gpu = r.device,
                                              .op = "gemm",
                                              .precision = r.precision,
                                              .shape = {{"m", r.m}, {"n", r.n}, {"k", r.k}},
                                              .mode = "device_hot",
                                              .weights = r.weights});
        REQUIRE(predicted);
        CHECK(predicted->latency_s * 1e6 == approx(r.us).epsilon(0.2));
    }
}

TEST_CASE("no quantised product beats peak, bandwidth or the floor") {
    for (const char* device : devices) {
        const auto models = fitted(device);
        for (const PrecisionSpec& precision : precision_specs()) {
            if (!precision.quantizes_weights() || !runs(device_spec(device), precision)) continue;
            for (const std::int64_t m : {1, 100, 4096, 20000}) {
                for (const std::int64_t n : {64, 11008}) {
                    for (const std::int64_t k : {128, 14336}) {
                        CAPTURE(device);
                        CAPTURE(precision.name);
                        CAPTURE(m);
                        CAPTURE(n);
                        CAPTURE(k);
                        const GemmShape s = layer(m, n, k, precision.precision);
                        const auto planned = models.plan(s, precision.path);
                        const auto& rates = models.at(precision.path);
                        CHECK(planned.seconds >=
                              flops(s) / (rates.peak_flops_per_s * models.parameters.tensor_gemm.clock));
                        CHECK(planned.seconds >=
                              precision.weight_bytes() * static_cast<double>(n * k) / rates.dram_bytes_per_s);
                        CHECK(planned.seconds > planned.floor_s);
                    }
                }
            }
        }
    }
}

TEST_CASE("large square products gain from narrower operands") {
    for (const char* device : {"l40s", "h100-sxm5-80gb", "b200", "gb300", "rtx-pro-6000-blackwell-server"}) {
        CAPTURE(device);
        const auto models = fitted(device);
        const double half_s = seconds(models, 8192, 8192, 8192, Precision::bf16);
        const double fp8_s = seconds(models, 8192, 8192, 8192, Precision::fp8);
        CHECK(fp8_s < half_s);
        CHECK(fp8_s > 0.45 * half_s);
        if (!runs(device_spec(device), precision_spec(Precision::nvfp4))) continue;
        CHECK(seconds(models, 8192, 8192, 8192, Precision::nvfp4) < fp8_s);
    }
}

TEST_CASE("weights of fewer bits stream faster; integer lanes that widen them slow long products, most on an H200") {
    double before = 0.99;  // an L40S is at its power limit
    for (const char* device : {"l40s", "a100-sxm4-80gb", "h200-sxm-141gb"}) {
        CAPTURE(device);
        const auto models = fitted(device);
        const double narrow_s = seconds(models, 1, 8192, 28672, Precision::fp16);
        CHECK(seconds(models, 1, 8192, 28672, Precision::w8a16) == approx(0.5 * narrow_s).epsilon(0.15));
        CHECK(seconds(models, 1, 8192, 28672, Precision::w4a16) == approx(0.26 * narrow_s).epsilon(0.25));
        const double widened =
            seconds(models, 8192, 8192, 8192, Precision::w4a16) / seconds(models, 8192, 8192, 8192, Precision::fp16);
        CHECK(widened > before);
        CHECK(widened < 1.5);
        before = widened;
    }
}

TEST_CASE("a grid of 64 rows quantises the others after them, on however many SMs") {
    const auto models = unfitted("rtx-pro-6000-blackwell-server");
    const auto& rates = models.at(MathPath::fp8_tensor);
    const auto cycles = [&](std::int64_t rows, std::int64_t columns) {
        const auto planned = models.plan(QuantizeShape{rows, columns, Precision::fp8_block}, MathPath::fp8_tensor);
        return planned.compute_s * rates.boost_clock_hz * models.parameters.tensor_gemm.clock;
    };
    const double row_cycles = 512 / models.parameters.quantized.at(QuantizedKernels::fp8_block).rate;
    CHECK(cycles(640, 512) == approx(10 * row_cycles));
    CHECK(cycles(640, 8192) == approx(10 * row_cycles));
}

TEST_CASE("a library that launches two kernels to quantise pays two floors and the gap between them") {
    const auto floor_s = [](std::string_view device) {
        return unfitted(device).plan(QuantizeShape{1, 128, Precision::fp8_block}, MathPath::fp8_tensor).floor_s;
    };
    CHECK(floor_s("b200") == approx(2 * floor_s("h100-sxm5-80gb") + graph_gap_s));
}

TEST_CASE("FlashInfer's kernel for block scales on Blackwell reads all weights for each 32 tokens") {
    const auto planned = [](const char* device, std::int64_t m, std::int64_t n, std::int64_t k) {
        GemmShape s = layer(m, n, k, Precision::fp8_block);
        s.scaled_outside = true;
        return fitted(device).plan(s, MathPath::fp8_tensor);
    };
    // A B200 (sglang pull request 13528): weights that the L2 holds, and weights that it does not.
    CHECK(1e6 * planned("b200", 2048, 576, 7168).seconds == approx(41.2).epsilon(0.12));
    CHECK(1e6 * planned("b200", 4096, 576, 7168).seconds == approx(63.5).epsilon(0.05));
    CHECK(1e6 * planned("b200", 256, 24576, 7168).seconds == approx(223.5).epsilon(0.1));
    CHECK(1e6 * planned("b200", 2048, 24576, 7168).seconds == approx(1632).epsilon(0.05));
    CHECK(1e6 * planned("b200", 512, 2048, 1024).seconds == approx(8.67).epsilon(0.12));  // cutlass issue 2923
    CHECK(planned("b200", 32, 576, 7168).blocks == 5);
    CHECK(planned("b200", 33, 576, 7168).blocks == 10);
    const auto waves_s = [&](const char* device, std::int64_t m) { return planned(device, m, 576, 7168).compute_s; };
    CHECK(waves_s("b200", 1024) == approx(2 * waves_s("b200", 32)));
    CHECK(waves_s("b300", 32) == approx(waves_s("b200", 32) * 1965 / 2032));
}

TEST_CASE("TensorRT-LLM's kernel quantises rows that are sorted by expert at an eighth of the rate of others") {
    const auto compute_s = [](bool by_expert) {
        const QuantizeShape s{65536, 7168, Precision::fp8_block, by_expert};
        return unfitted("h200-sxm-141gb").plan(s, MathPath::fp8_tensor).compute_s;
    };
    CHECK(compute_s(true) == approx(8 * compute_s(false)));
}

TEST_CASE("a small tile on tcgen05 takes 0.8 µs for 1,000 values, whatever their width") {
    const auto models = unfitted("b200");
    // SGLang 0.5.14 on a B200, with the kernel that quantises (AIConfigurator 0.12): 41.4 and 22.2 µs.
    CHECK(1e6 * seconds(models, 4, 768, 51200, Precision::nvfp4) == approx(41.4).epsilon(0.25));
    CHECK(1e6 * seconds(models, 48, 1536, 16384, Precision::nvfp4) == approx(22.2).epsilon(0.25));
    const auto steps_s = [&](Precision operands, std::int64_t k) {
        const MathPath path = precision_spec(operands).path;
        const auto of = [&](std::int64_t values) {
            return models.plan(layer(4, 768, values, operands), path).compute_s;
        };
        return of(2 * k) - of(k);
    };
    CHECK(steps_s(Precision::nvfp4, 16384) == approx(steps_s(Precision::fp8, 16384)));
    CHECK(steps_s(Precision::nvfp4, 1000 * 64) ==
          approx(1000 * 85 / (models.parameters.tensor_gemm.clock * models.at(MathPath::fp4_tensor).boost_clock_hz)));
}

TEST_CASE("sums over blocks of a scale are added in f32 where tensor cores take no scales") {
    const auto promotion = [](std::string_view device, Precision operands) {
        return tensor_gemm::promotion(precision_spec(operands), unfitted(device).at(MathPath::fp8_tensor));
    };
    // 1979 TFLOP/s on 132 SMs at 1.98 GHz: 3786 products a cycle, one sum in f32 for each 128 of them, 128 at a time.
    CHECK(promotion("h100-sxm5-80gb", Precision::fp8_block) == approx(1 + 3786. / (128 * 128)).epsilon(0.001));
    CHECK(promotion("h100-sxm5-80gb", Precision::fp8) == 1);
    CHECK(promotion("b200", Precision::fp8_block) == 1);
    CHECK(promotion("rtx-pro-6000-blackwell-server", Precision::nvfp4) == 1);
}

TEST_CASE("more rows never take less time, quantised or not") {
    for (const char* device : devices) {
        const auto models = fitted(device);
        for (const PrecisionSpec& precision : precision_specs()) {
            if (!precision.quantizes_weights() || !runs(device_spec(device), precision)) continue;
            double before_s = 0;
            for (std::int64_t m = 1; m < 70000; m = m * 5 / 4 + 1) {
                CAPTURE(device);
                CAPTURE(precision.name);
                CAPTURE(m);
                const double now_s = seconds(models, m, 4096, 4096, precision.precision);
                CHECK(now_s >= before_s * (1 - 1e-9));
                before_s = now_s;
            }
        }
    }
}

TEST_CASE("libraries neither split reductions of quantised products nor take tiles of few rows for many") {
    const auto models = fitted("h100-sxm5-80gb");
    CHECK(models.plan(layer(16, 1024, 16384, Precision::bf16), MathPath::bf16_tensor).split_k > 1);
    CHECK(models.plan(layer(16, 1024, 16384, Precision::fp8), MathPath::fp8_tensor).split_k == 1);
    for (const std::int64_t m : {17, 65, 129}) {
        CAPTURE(m);
        CHECK(models.plan(layer(m, 1024, 16384, Precision::fp8), MathPath::fp8_tensor).tile.rows >= (m > 64   ? 128
                                                                                                     : m > 32 ? 64
                                                                                                              : 32));
    }
}
