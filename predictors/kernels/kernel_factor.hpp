#pragma once

#include "ftax/factors.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax {

/// Returns the class whose factor scales a kernel's time.
[[nodiscard]] Factor factor_of(const KernelShape& shape, MathPath path);

}  // namespace ftax
