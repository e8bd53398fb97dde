#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/device.hpp"
#include "ftax/types.hpp"

/// What each precision of a run means: formats of operands, scales and sums, and the units that multiply them.
namespace ftax {

/// One precision. Those with narrower weights than `storage` quantise linear layers and experts alone: embeddings,
/// norms, attention, routers and heads stay as stored, as the checkpoints of vLLM, TensorRT-LLM and torchao have them.
struct PrecisionSpec {
    Precision precision = Precision::fp32;
    std::string_view name;
    DType storage = DType::f32;     ///< of weights and activations outside of quantised layers
    DType activation = DType::f32;  ///< operands of layers with weights
    DType weight = DType::f32;
    DType scale = DType::unknown;  ///< of the blocks of operands
    int activation_block = 0;      ///< values that share a scale; 0: a whole row
    int weight_block = 0;
    DType sum = DType::f32;          ///< type of the accumulators
    MathPath path = MathPath::fp32;  ///< units that multiply layers with weights: the rate is the datasheet's for them
    MathPath rest = MathPath::fp32;  ///< of the other contractions
    bool autocast = false;           ///< of an f32 graph each operator chooses f16 or f32, as under torch.autocast
    bool keeps_casts = false;  ///< the autocast context stays open over all runs: the first of them casts the weights
    bool falls_back = false;   ///< devices without these units run it on their CUDA cores
    double energy_ratio = 1;   ///< energy of an operation against one of f16
    QuantizedKernels kernels = QuantizedKernels::none;

    [[nodiscard]] bool quantizes_weights() const noexcept { return bits_of(weight) < bits_of(storage); }
    /// Whether activations must be quantised by a kernel of their own first.
    [[nodiscard]] bool quantizes_activations() const noexcept { return bits_of(activation) < bits_of(storage); }
    /// Bytes of one value with its part of a scale.
    [[nodiscard]] double activation_bytes() const noexcept;
    [[nodiscard]] double weight_bytes() const noexcept;
};

[[nodiscard]] std::span<const PrecisionSpec> precision_specs() noexcept;
[[nodiscard]] const PrecisionSpec& precision_spec(Precision precision) noexcept;
[[nodiscard]] std::vector<std::string> precision_names();

/// Whether a device has the units that a precision needs.
[[nodiscard]] bool runs(const DeviceSpec& device, const PrecisionSpec& precision) noexcept;

}  // namespace ftax
