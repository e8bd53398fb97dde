#include "ftax/precision.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace ftax;

TEST_CASE("precisions are known by their names") {
    std::set<std::string> names;
    for (const PrecisionSpec& spec : precision_specs()) {
        CAPTURE(spec.name);
        CHECK(names.insert(std::string(spec.name)).second);
        CHECK(precision_from_name(spec.name) == spec.precision);
        CHECK(name_of(spec.precision) == spec.name);
    }
    CHECK(precision_from_name("FP8-Block") == Precision::fp8_block);
    CHECK(precision_from_name("AWQ") == Precision::w4a16);
    CHECK(precision_from_name("gptq") == Precision::w4a16);
    CHECK(precision_from_name("int4") == Precision::w4a16);
    CHECK(precision_from_name("W8A8") == Precision::int8);
    CHECK(precision_from_name("FP8_DYNAMIC") == Precision::fp8);
    CHECK_FALSE(precision_from_name("fp7"));
}

TEST_CASE("bytes of operands count their scales") {
    CHECK(precision_spec(Precision::fp8).activation_bytes() == 1);
    CHECK(precision_spec(Precision::fp8_block).activation_bytes() == 1 + 4.0 / 128);
    CHECK(precision_spec(Precision::fp8_block).weight_bytes() == 1 + 4.0 / 16384);
    CHECK(precision_spec(Precision::nvfp4).weight_bytes() == 0.5 + 1.0 / 16);
    CHECK(precision_spec(Precision::w4a16).weight_bytes() == 0.5 + 2.0 / 128);
    CHECK(precision_spec(Precision::w4a16).activation_bytes() == 2);
    CHECK(precision_spec(Precision::bf16).weight_bytes() == 2);
}

TEST_CASE("files of GGUF have the bits of their blocks, or the mean of several formats") {
    // Blocks of 32 values with an f16 scale: ggml-common.h, block_q4_0 (18 bytes) and block_q8_0 (34).
    CHECK(precision_spec(Precision::q4_0).weight_bytes() == 18.0 / 32);
    CHECK(precision_spec(Precision::q8_0).weight_bytes() == 34.0 / 32);
    CHECK(precision_spec(Precision::q4_k_m).weight_bytes() > 18.0 / 32);
    CHECK(precision_spec(Precision::q6_k).weight_bytes() < 34.0 / 32);
    CHECK(precision_from_name("Q4_K_M") == Precision::q4_k_m);
    CHECK(precision_spec(Precision::q4_0).is_of_gguf());
    CHECK_FALSE(precision_spec(Precision::w4a16).is_of_gguf());
}

TEST_CASE("some precisions quantise weights, some of them activations") {
    for (const PrecisionSpec& spec : precision_specs()) {
        CAPTURE(spec.name);
        const bool quantized = spec.precision > Precision::amp_cached;
        const bool weights_alone = spec.precision >= Precision::w8a16;
        CHECK(spec.quantizes_weights() == quantized);
        CHECK(spec.quantizes_activations() == (quantized && !weights_alone));
        CHECK((spec.kernels == QuantizedKernels::none) == !spec.quantizes_activations());
    }
}

TEST_CASE("devices run what they have units for") {
    const auto runs_on = [](const char* device, Precision precision) {
        return runs(device_spec(device), precision_spec(precision));
    };
    CHECK(runs_on("h100-sxm5-80gb", Precision::fp8));
    CHECK_FALSE(runs_on("h100-sxm5-80gb", Precision::nvfp4));
    CHECK(runs_on("b200", Precision::nvfp4));
    CHECK_FALSE(runs_on("a100-sxm4-80gb", Precision::fp8_block));
    CHECK(runs_on("a100-sxm4-80gb", Precision::int8));
    CHECK(runs_on("t4", Precision::w4a16));
    CHECK(runs_on("p40", Precision::w4a16));
    CHECK_FALSE(runs_on("p40", Precision::int8));
    CHECK(runs_on("p100-pcie-16gb", Precision::fp16));
}
