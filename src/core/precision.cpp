#include "ftax/precision.hpp"

#include <algorithm>
#include <array>

#include "src/core/near_names.hpp"

namespace ftax {
namespace {

using enum DType;
using enum MathPath;

// Formats. Sources: OCP 8-bit floating point specification (fp8: one scale for a row of activations and a column of
// weights, as vLLM's dynamic quantisation has it); DeepSeek-V3 technical report, 3.3 (fp8_block: a scale for 1 x 128
// activations and 128 x 128 weights); NVIDIA, "Introducing NVFP4" (nvfp4: an e4m3 scale for 16 values); AWQ and GPTQ
// checkpoints (w4a16: groups of 128). Energy: fits to tensor_ops.csv, docs/kernel-models.
constexpr std::array specs{
    PrecisionSpec{.precision = Precision::fp32, .name = "fp32", .falls_back = true},
    PrecisionSpec{.precision = Precision::tf32, .name = "tf32", .path = tf32, .rest = tf32, .energy_ratio = 2},
    PrecisionSpec{.precision = Precision::fp16,
                  .name = "fp16",
                  .storage = f16,
                  .activation = f16,
                  .weight = f16,
                  .path = fp16_tensor,
                  .rest = fp16_tensor,
                  .falls_back = true},
    PrecisionSpec{.precision = Precision::bf16,
                  .name = "bf16",
                  .storage = bf16,
                  .activation = bf16,
                  .weight = bf16,
                  .path = bf16_tensor,
                  .rest = bf16_tensor},
    PrecisionSpec{.precision = Precision::amp,
                  .name = "amp",
                  .path = fp16_tensor,
                  .rest = fp16_tensor,
                  .autocast = true,
                  .falls_back = true},
    PrecisionSpec{.precision = Precision::amp_cached,
                  .name = "amp_cached",
                  .path = fp16_tensor,
                  .rest = fp16_tensor,
                  .autocast = true,
                  .keeps_casts = true,
                  .falls_back = true},
    PrecisionSpec{.precision = Precision::fp8,
                  .name = "fp8",
                  .storage = bf16,
                  .activation = f8e4m3,
                  .weight = f8e4m3,
                  .scale = f32,
                  .path = fp8_tensor,
                  .rest = bf16_tensor,
                  .energy_ratio = 0.5,
                  .kernels = QuantizedKernels::fp8},
    PrecisionSpec{.precision = Precision::fp8_block,
                  .name = "fp8_block",
                  .storage = bf16,
                  .activation = f8e4m3,
                  .weight = f8e4m3,
                  .scale = f32,
                  .activation_block = 128,
                  .weight_block = 128 * 128,
                  .path = fp8_tensor,
                  .rest = bf16_tensor,
                  .energy_ratio = 0.5,
                  .kernels = QuantizedKernels::fp8_block},
    PrecisionSpec{.precision = Precision::int8,
                  .name = "int8",
                  .storage = f16,
                  .activation = i8,
                  .weight = i8,
                  .scale = f32,
                  .sum = i32,
                  .path = int8_tensor,
                  .rest = fp16_tensor,
                  .energy_ratio = 0.5,
                  .kernels = QuantizedKernels::fp8},
    PrecisionSpec{.precision = Precision::nvfp4,
                  .name = "nvfp4",
                  .storage = bf16,
                  .activation = f4,
                  .weight = f4,
                  .scale = f8e4m3,
                  .activation_block = 16,
                  .weight_block = 16,
                  .path = fp4_tensor,
                  .rest = bf16_tensor,
                  .energy_ratio = 0.5,
                  .kernels = QuantizedKernels::nvfp4},
    PrecisionSpec{.precision = Precision::w8a16,
                  .name = "w8a16",
                  .storage = f16,
                  .activation = f16,
                  .weight = i8,
                  .scale = f16,
                  .path = fp16_tensor,
                  .rest = fp16_tensor,
                  .falls_back = true},
    PrecisionSpec{.precision = Precision::w4a16,
                  .name = "w4a16",
                  .storage = f16,
                  .activation = f16,
                  .weight = i4,
                  .scale = f16,
                  .weight_block = 128,
                  .path = fp16_tensor,
                  .rest = fp16_tensor,
                  .falls_back = true},
};

constexpr bool specs_follow_precisions() {
    for (std::size_t i = 0; i < specs.size(); ++i) {
        if (specs[i].precision != static_cast<Precision>(i)) return false;
    }
    return specs.size() == precision_count;
}
static_assert(specs_follow_precisions());

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
    const std::string wanted = normalized_name(name);
    const auto found =
        std::find_if(specs.begin(), specs.end(), [&](const auto& s) { return normalized_name(s.name) == wanted; });
    if (found == specs.end()) return std::nullopt;
    return found->precision;
}

bool runs(const DeviceSpec& device, const PrecisionSpec& precision) noexcept {
    return precision.falls_back || (device.peak(precision.path) && device.peak(precision.rest));
}

}  // namespace ftax
