#pragma once

#include <cstdint>

#include "ftax/graph.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/timeline/schedule.hpp"

namespace ftax {

/// Reads the dimensions of a scheduled kernel from the tensors of its operator. With `engine_is_channels_last`
/// convolutions run on NHWC data regardless of the graph's strides.
/// Throws Error{limit} if a count exceeds int64.
[[nodiscard]] KernelShape kernel_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                       const BoundShapes& bound, bool engine_is_channels_last);

/// Returns true if the kernel is launched for these shapes (see LaunchCondition).
[[nodiscard]] bool is_launched(const Graph& graph, const Kernel& kernel, const BoundShapes& bound);

/// Returns the number of sequential launches per operator: one per step for recurrences.
[[nodiscard]] std::int64_t repetitions(const Graph& graph, const Kernel& kernel, const BoundShapes& bound);

}  // namespace ftax
