#pragma once

#include <functional>

#include "ftax/memory.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/timeline/schedule.hpp"

namespace ftax {

/// Returns the function for the peak memory of a run by its shapes; it refers to all arguments. A tensor is alive from
/// the operator that writes it to the last one that reads it; views and in-place results share the storage of their
/// base; inputs and outputs of the graph live throughout. Rounding and fragmentation of the allocator are not included.
[[nodiscard]] std::function<MemoryUse(const BoundShapes&)> memory_model(const Graph& graph, const Schedule& schedule,
                                                                        const FrameworkModel& framework,
                                                                        const DeviceSpec& device);

}  // namespace ftax
