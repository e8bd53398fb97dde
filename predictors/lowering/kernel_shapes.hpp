#pragma once

#include <cstdint>

#include "ftax/graph.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/timeline/schedule.hpp"

namespace ftax {

/// Reads the dimensions of a scheduled kernel from the tensors of its operator. With `engine_is_channels_last`
/// convolutions run on NHWC data whatever the graph's strides say.
/// Throws Error{limit} when a count leaves int64.
[[nodiscard]] KernelShape kernel_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                       const BoundShapes& bound, bool engine_is_channels_last);

/// Whether the kernel is launched for these shapes (see LaunchCondition).
[[nodiscard]] bool is_launched(const Graph& graph, const Kernel& kernel, const BoundShapes& bound);

/// How often an operator launches the kernel, one after the other: a recurrence once for each step.
[[nodiscard]] std::int64_t repetitions(const Graph& graph, const Kernel& kernel, const BoundShapes& bound);

}  // namespace ftax
