#pragma once

#include "ftax/factors.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax {

[[nodiscard]] Factor factor_of(const KernelShape& shape, MathPath path);

}  // namespace ftax
