#pragma once

#include "ftax/predict.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax {

/// Returns details of a kernel's time: the choice, its alternatives and its position in the roofline. Slower than
/// KernelModels::plan, on which it is based.
[[nodiscard]] KernelDetail kernel_detail(const KernelModels& models, const KernelShape& shape, MathPath path);

}  // namespace ftax
