#pragma once

#include "ftax/memory.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/timeline/schedule.hpp"

namespace ftax {

/// Returns the peak memory of a run. A tensor is alive from the operator that writes it to the last one that reads it;
/// views and in-place results share the storage of their base; inputs and outputs of the graph live throughout.
/// Rounding and fragmentation of the allocator are not included.
[[nodiscard]] MemoryUse memory_use(const Graph& graph, const Schedule& schedule, const BoundShapes& bound,
                                   const FrameworkModel& framework, const DeviceSpec& device);

}  // namespace ftax
