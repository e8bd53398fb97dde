#pragma once

#include "ftax/memory.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/timeline/schedule.hpp"

namespace ftax {

/// Sums up the memory of a run. Activations are what is alive while operator follows operator: a tensor from the
/// operator that writes it to the last that reads it, views and in-place writes with the tensor they belong to, inputs
/// and outputs of the graph throughout. What an allocator loses to rounding and fragmentation is not in it.
[[nodiscard]] MemoryUse memory_use(const Graph& graph, const Schedule& schedule, const BoundShapes& bound,
                                   const FrameworkModel& framework, const DeviceSpec& device);

}  // namespace ftax
