#pragma once

#include "ftax/graph.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/schedule.hpp"

namespace ftax {

/// Reads the dimensions of a scheduled kernel from the tensors of its operator.
/// Throws Error{limit} when a count leaves int64.
[[nodiscard]] kernels::GemmShape gemm_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                            const BoundShapes& bound);
[[nodiscard]] kernels::ConvShape conv_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                            const BoundShapes& bound, bool channels_last);
[[nodiscard]] kernels::MemoryShape memory_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                                const BoundShapes& bound);
[[nodiscard]] kernels::AttentionShape attention_shape(const Graph& graph, const Schedule& schedule,
                                                      const Kernel& kernel, const BoundShapes& bound);

/// Tells whether the kernel is launched for these shapes (see LaunchCondition).
[[nodiscard]] bool is_launched(const Graph& graph, const Kernel& kernel, const BoundShapes& bound);

}  // namespace ftax
