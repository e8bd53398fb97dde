#pragma once

#include <cstdint>
#include <vector>

#include "ftax/graph.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/timeline/schedule.hpp"

namespace ftax {

/// Returns the shape of a scheduled kernel for one binding. Throws Error{limit} if a count exceeds int64.
[[nodiscard]] KernelShape kernel_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                       const BoundShapes& bound);

/// Returns true if the kernel is launched for these shapes (see LaunchCondition).
[[nodiscard]] bool is_launched(const Graph& graph, const Kernel& kernel, const BoundShapes& bound);

/// Returns the number of sequential launches per operator: one per step for recurrences.
[[nodiscard]] std::int64_t repetitions(const Graph& graph, const Kernel& kernel, const BoundShapes& bound);

/// Returns, for each kernel of a schedule, the first kernel with the same shape for every binding, possibly itself.
/// Networks repeat their blocks, so each distinct kernel is timed once per binding. Expressions have a normal form, so
/// kernels are compared without binding.
[[nodiscard]] std::vector<std::uint32_t> first_equal_kernels(const Graph& graph, const Schedule& schedule);

/// The same for the forward call (entry 0) and launches of equal kernels and dispatch; those on the CPU equal none.
[[nodiscard]] std::vector<std::uint32_t> first_equal_launches(const Graph& graph, const Schedule& schedule,
                                                              const std::vector<std::uint32_t>& first_equal_kernels);

/// A distinct kernel of a forward pass, with its number of launches.
struct CountedKernel {
    KernelShape shape;
    MathPath path = MathPath::fp32;
    double count = 1;
};

/// Returns the distinct kernels that a schedule launches for one binding, with their counts.
[[nodiscard]] std::vector<CountedKernel> list_kernels(const Graph& graph, const Schedule& schedule,
                                                      const BoundShapes& bound);

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
