#pragma once

#include <vector>

#include "ftax/graph.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/lowering/kernel_shapes.hpp"
#include "predictors/timeline/schedule.hpp"

namespace ftax {

/// A distinct kernel of a forward pass, with its number of launches.
struct CountedKernel {
    KernelShape shape;
    MathPath path = MathPath::fp32;
    double count = 1;
};

/// Returns the distinct kernels that a schedule launches for one binding, with their counts.
[[nodiscard]] std::vector<CountedKernel> list_kernels(const Graph& graph, const Schedule& schedule,
                                                      const BoundShapes& bound, bool engine_is_channels_last = false);

[[nodiscard]] inline kernels::KernelTime sum_time(const std::vector<CountedKernel>& kernels,
                                                  const KernelModels& models) {
    kernels::KernelTime total;
    for (const CountedKernel& kernel : kernels) {
        const auto one = std::visit([&](const auto& shape) { return models.plan(shape, kernel.path); }, kernel.shape);
        total.seconds += one.seconds * kernel.count;
        total.power_limited_s += one.power_limited_s * kernel.count;
    }
    return total;
}

}  // namespace ftax
