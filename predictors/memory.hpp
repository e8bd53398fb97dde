#pragma once

#include <string_view>

#include "ftax/memory.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/timeline/schedule.hpp"

namespace ftax {

/// Whether a tensor of that name holds keys or values of earlier tokens: as config.json models, optimum's ONNX files
/// ("past_key_values.0.key") and exported caches of transformers ("key_cache_0", "layers_0_keys") call them.
[[nodiscard]] bool is_cache_name(std::string_view name);

/// Sums up the memory of a run. Activations are what is alive while operator follows operator: a tensor from the
/// operator that writes it to the last that reads it, views and in-place writes with the tensor they belong to, inputs
/// and outputs of the graph throughout. What an allocator loses to rounding and fragmentation is not in it.
[[nodiscard]] MemoryUse memory_use(const Graph& graph, const Schedule& schedule, const BoundShapes& bound,
                                   const FrameworkModel& framework, const DeviceSpec& device);

}  // namespace ftax
