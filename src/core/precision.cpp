#include "ftax/precision.hpp"

#include <algorithm>
#include <array>

#include "src/core/near_names.hpp"

namespace ftax {
namespace {

using enum DType;
using enum MathPath;

/// Weights and activations of one type, and the units that multiply them in every layer.
constexpr PrecisionSpec uniform(Precision precision, std::string_view name, DType type, MathPath units,
                                bool falls_back) {
    return {.precision = precision,
            .name = name,
            .storage = type,
            .activation = type,
            .weight = type,
            .path = units,
            .rest = units,
            .falls_back = falls_back};
}

/// Each operator of an f32 graph chooses its type.
constexpr PrecisionSpec autocast(Precision precision, std::string_view name, bool keeps_casts) {
    PrecisionSpec spec = uniform(precision, name, f32, fp16_tensor, true);
    spec.autocast = true, spec.keeps_casts = keeps_casts;
    return spec;
}

/// Layers with weights of `type` in a model of `storage`.
constexpr PrecisionSpec quantized(Precision precision, std::string_view name, DType storage, DType type, DType scale,
                                  MathPath units, MathPath rest, QuantizedKernels kernels, int activation_block = 0,
                                  int weight_block = 0, DType sum = f32) {
    return {.precision = precision,
            .name = name,
            .storage = storage,
            .activation = type,
            .weight = type,
            .scale = scale,
            .activation_block = activation_block,
            .weight_block = weight_block,
            .sum = sum,
            .path = units,
            .rest = rest,
            .energy_ratio = 0.5,
            .kernels = kernels};
}

/// Weights of `type` that are multiplied as f16; `block` values share a scale, 0: a row.
constexpr PrecisionSpec weights_alone(Precision precision, std::string_view name, DType type, int block) {
    PrecisionSpec spec = uniform(precision, name, f16, fp16_tensor, true);
    spec.weight = type, spec.scale = f16, spec.weight_block = block;
    return spec;
}

// Formats. Sources: OCP 8-bit floating point specification (fp8: one scale for a row of activations and a column of
// weights, as vLLM's dynamic quantisation has it); DeepSeek-V3 technical report, 3.3 (fp8_block: a scale for 1 x 128
// activations and 128 x 128 weights); NVIDIA, "Introducing NVFP4" (nvfp4: an e4m3 scale for 16 values); AWQ and GPTQ
// checkpoints (w4a16: groups of 128); llama.cpp, tools/quantize/README.md (of several formats the mean bits of
// Llama-3.1-8B, to 2 %). Energy: fits to tensor_ops.csv, docs/kernel-models.
constexpr std::array specs{
    uniform(Precision::fp32, "fp32", f32, MathPath::fp32, true),
    PrecisionSpec{.precision = Precision::tf32, .name = "tf32", .path = tf32, .rest = tf32, .energy_ratio = 2},
    uniform(Precision::fp16, "fp16", f16, fp16_tensor, true),
    uniform(Precision::bf16, "bf16", bf16, bf16_tensor, false),
    autocast(Precision::amp, "amp", false),
    autocast(Precision::amp_cached, "amp_cached", true),
    quantized(Precision::fp8, "fp8", bf16, f8e4m3, f32, fp8_tensor, bf16_tensor, QuantizedKernels::fp8),
    quantized(Precision::fp8_block, "fp8_block", bf16, f8e4m3, f32, fp8_tensor, bf16_tensor,
              QuantizedKernels::fp8_block, 128, 128 * 128),
    quantized(Precision::int8, "int8", f16, i8, f32, int8_tensor, fp16_tensor, QuantizedKernels::fp8, 0, 0, i32),
    quantized(Precision::nvfp4, "nvfp4", bf16, f4, f8e4m3, fp4_tensor, bf16_tensor, QuantizedKernels::nvfp4, 16, 16),
    weights_alone(Precision::w8a16, "w8a16", i8, 0),
    weights_alone(Precision::w4a16, "w4a16", i4, 128),
    weights_alone(Precision::q4_0, "q4_0", i4, 32),
    weights_alone(Precision::q4_k_m, "q4_k_m", i4, 18),
    weights_alone(Precision::q5_k_m, "q5_k_m", i4, 9),
    weights_alone(Precision::q6_k, "q6_k", i4, 6),
    weights_alone(Precision::q8_0, "q8_0", i8, 32),
};

// One for each precision, in their order.
static_assert(specs.size() == precision_count && std::ranges::adjacent_find(specs, std::ranges::greater_equal{},
                                                                            &PrecisionSpec::precision) == specs.end());

double bytes_with_scale(DType type, DType scale, double block) {
    return (bits_of(type) + (block > 0 ? bits_of(scale) / block : 0)) / 8;
}

}  // namespace

double PrecisionSpec::activation_bytes() const noexcept {
    return bytes_with_scale(activation, scale, activation_block);
}
double PrecisionSpec::weight_bytes() const noexcept {
    return bytes_with_scale(weight, scale, weight_block);
}

std::span<const PrecisionSpec> precision_specs() noexcept {
    return specs;
}
const PrecisionSpec& precision_spec(Precision precision) noexcept {
    return specs[static_cast<std::size_t>(precision)];
}

std::vector<std::string> precision_names() {
    std::vector<std::string> names;
    for (const PrecisionSpec& spec : specs) names.emplace_back(spec.name);
    return names;
}

std::string_view name_of(Precision precision) noexcept {
    return precision_spec(precision).name;
}
std::optional<Precision> precision_from_name(std::string_view name) {
    // Names in measurement files and on command lines are compared without case and punctuation.
    const std::string given = normalized_name(name);
    const bool half = given == "float16" || given == "half";  // names of PyTorch
    const std::string wanted = half ? "fp16" : given == "float32" ? "fp32" : given == "bfloat16" ? "bf16" : given;
    const auto found = std::ranges::find_if(specs, [&](const auto& s) { return normalized_name(s.name) == wanted; });
    if (found == specs.end()) return std::nullopt;
    return found->precision;
}

bool runs(const DeviceSpec& device, const PrecisionSpec& precision) noexcept {
    return precision.falls_back || (device.peak(precision.path) && device.peak(precision.rest));
}

}  // namespace ftax
