#pragma once

#include "predictors/kernels/kernel_models.hpp"
#include "predictors/kernels/residency.hpp"

namespace ftax {

struct KernelCost : kernels::KernelTime<double> {
    Bound bound = Bound::latency_floor;
    Residency residency;
};

/// Time of a kernel, what limits it, and how it fills the GPU.
[[nodiscard]] KernelCost kernel_cost(const KernelModels<double>& models, const kernels::GemmShape& shape,
                                     MathPath path);
[[nodiscard]] KernelCost kernel_cost(const KernelModels<double>& models, const kernels::ConvShape& shape,
                                     MathPath path);
[[nodiscard]] KernelCost kernel_cost(const KernelModels<double>& models, const kernels::MemoryShape& shape,
                                     MathPath path);
[[nodiscard]] KernelCost kernel_cost(const KernelModels<double>& models, const kernels::AttentionShape& shape,
                                     MathPath path);

}  // namespace ftax
