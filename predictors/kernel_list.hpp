#pragma once

#include <vector>

#include "ftax/graph.hpp"
#include "predictors/kernel_models.hpp"
#include "predictors/kernel_shapes.hpp"
#include "predictors/schedule.hpp"

namespace ftax {

/// Equal kernels of a forward pass.
struct CountedKernel {
    KernelShape shape;
    MathPath path = MathPath::fp32;
    double count = 1;
};

/// Lists the kernels that a schedule launches for one binding; equal ones are counted, not repeated.
[[nodiscard]] std::vector<CountedKernel> list_kernels(const Graph& graph, const Schedule& schedule,
                                                      const BoundShapes& bound, bool engine_is_channels_last = false);

/// Sums the time of listed kernels.
template <class T>
T sum_seconds(const std::vector<CountedKernel>& kernels, const KernelModels<T>& models) {
    T total(0.0);
    for (const CountedKernel& kernel : kernels) {
        total += std::visit([&](const auto& shape) { return models.seconds(shape, kernel.path); }, kernel.shape) *
                 kernel.count;
    }
    return total;
}

}  // namespace ftax
