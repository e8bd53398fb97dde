#pragma once

#include "ftax/device.hpp"
#include "ftax/types.hpp"

/// What a precision means on a device: the type that is stored, the units that compute.
namespace ftax {

/// Element type that activations and weights have under a precision, outside of quantised layers.
[[nodiscard]] DType storage_type(Precision precision) noexcept;

/// Units that do the multiply-adds of a convolution or matrix product.
/// fp32 convolutions run on TF32 tensor cores where the device has them, matrix products do not: PyTorch's defaults
/// `torch.backends.cudnn.allow_tf32 = True`, `torch.backends.cuda.matmul.allow_tf32 = False` since 1.12.
/// Throws Error{usage} when the device lacks the precision.
[[nodiscard]] MathPath math_path(const DeviceSpec& device, Precision precision, bool convolution);
/// The same of a layer with weights, which some precisions quantise.
[[nodiscard]] MathPath layer_path(const DeviceSpec& device, Precision precision);

}  // namespace ftax
