#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/types.hpp"

/// Definition of each precision: formats of operands, scales and accumulators, and the units that multiply them.
namespace ftax {

/// One precision. Precisions with weights narrower than `storage` quantise only linear layers and experts; embeddings,
/// norms, attention, routers and heads keep `storage`, as in checkpoints of vLLM, TensorRT-LLM and torchao.
struct PrecisionSpec {
    Precision precision = Precision::fp32;
    std::string_view name;
    DType storage = DType::f32;     ///< weights and activations outside quantised layers
    DType activation = DType::f32;  ///< operands of layers with weights
    DType weight = DType::f32;
    DType scale = DType::unknown;  ///< type of the block scales of operands
    int activation_block = 0;      ///< values that share a scale; 0: a whole row
    int weight_block = 0;
    DType sum = DType::f32;          ///< type of the accumulators
    MathPath path = MathPath::fp32;  ///< units that multiply layers with weights; their rate comes from the datasheet
    MathPath rest = MathPath::fp32;  ///< units for the other contractions
    bool autocast = false;           ///< each operator of an f32 graph runs in f16 or f32, as under torch.autocast
    bool keeps_casts = false;  ///< the autocast context stays open over all runs; only the first casts the weights
    bool falls_back = false;   ///< devices without these units use CUDA cores
    double energy_ratio = 1;   ///< energy of an operation relative to f16
    QuantizedKernels kernels = QuantizedKernels::none;

    [[nodiscard]] bool quantizes_weights() const noexcept { return bits_of(weight) < bits_of(storage); }
    /// Returns true if a separate kernel must quantise the activations first.
    [[nodiscard]] bool quantizes_activations() const noexcept { return bits_of(activation) < bits_of(storage); }
    /// Returns true for a precision of GGUF files, in which the head is quantised as well.
    [[nodiscard]] constexpr bool is_of_gguf() const noexcept { return precision >= Precision::q4_0; }
    /// Returns the bytes of one value including its share of a scale.
    [[nodiscard]] double activation_bytes() const noexcept;
    [[nodiscard]] double weight_bytes() const noexcept;
};

[[nodiscard]] std::span<const PrecisionSpec> precision_specs() noexcept;
[[nodiscard]] const PrecisionSpec& precision_spec(Precision precision) noexcept;
[[nodiscard]] std::vector<std::string> precision_names();
[[nodiscard]] std::optional<MathPath> math_path_from_name(std::string_view name) noexcept;

/// Returns true if a device has the units that a precision needs.
[[nodiscard]] bool runs(const DeviceSpec& device, const PrecisionSpec& precision) noexcept;

}  // namespace ftax
