#pragma once

#include "ftax/device.hpp"
#include "ftax/precision.hpp"
#include "ftax/types.hpp"

/// Implementation of a precision on a device: storage type and execution units.
namespace ftax {

/// Returns the element type of activations and weights under a precision, outside quantised layers.
[[nodiscard]] DType storage_type(Precision precision) noexcept;

/// Throws Error{usage} for a device without the units of a precision, naming those that it runs.
void require_arithmetic(const DeviceSpec& device, const PrecisionSpec& spec);

/// Returns the units for the multiply-adds of a convolution or matrix product. fp32 convolutions use TF32 tensor cores
/// if available, matrix products do not: PyTorch's defaults `torch.backends.cudnn.allow_tf32 = True`,
/// `torch.backends.cuda.matmul.allow_tf32 = False` since 1.12.
/// Throws Error{usage} if the device lacks the precision.
[[nodiscard]] MathPath math_path(const DeviceSpec& device, Precision precision, bool convolution);
/// The same for layers with weights, which some precisions quantise.
[[nodiscard]] MathPath layer_path(const DeviceSpec& device, Precision precision);

}  // namespace ftax
