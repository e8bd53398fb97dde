#pragma once

#include "ftax/factors.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax {

/// The class whose factor the time of a kernel takes.
[[nodiscard]] Factor factor_of(const KernelShape& shape, MathPath path);

}  // namespace ftax
