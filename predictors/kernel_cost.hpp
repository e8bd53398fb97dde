#pragma once

#include "predictors/kernel_models.hpp"

namespace ftax {

struct KernelCost {
    double seconds = 0;
    Bound bound = Bound::latency_floor;
};

/// Time of a kernel and what limits it.
[[nodiscard]] KernelCost kernel_cost(const KernelModels<double>& models, const kernels::GemmShape& shape, MathPath path);
[[nodiscard]] KernelCost kernel_cost(const KernelModels<double>& models, const kernels::ConvShape& shape, MathPath path);
[[nodiscard]] KernelCost kernel_cost(const KernelModels<double>& models, const kernels::MemoryShape& shape, MathPath path);
[[nodiscard]] KernelCost kernel_cost(const KernelModels<double>& models, const kernels::AttentionShape& shape, MathPath path);

}  // namespace ftax
