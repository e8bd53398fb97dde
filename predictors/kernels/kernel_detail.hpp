#pragma once

#include "ftax/predict.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax {

/// Says how a kernel is timed: what was chosen against which alternatives, and where it stands in the roofline.
/// Slower than KernelModels::plan, which it reads.
[[nodiscard]] KernelDetail kernel_detail(const KernelModels& models, const KernelShape& shape, MathPath path);

}  // namespace ftax
