#pragma once

#include <cstdint>
#include <vector>

#include "ftax/graph.hpp"
#include "predictors/timeline/schedule.hpp"

namespace ftax {

/// Returns, for each kernel of a schedule, the first kernel with the same shape for every binding, possibly itself.
/// Networks repeat their blocks, so each distinct kernel is timed once per binding. Expressions have a normal form, so
/// kernels are compared without binding.
[[nodiscard]] std::vector<std::uint32_t> first_equal_kernels(const Graph& graph, const Schedule& schedule);

/// The same for launches with equal kernels and equal dispatch. Launches that run on the CPU equal no other.
[[nodiscard]] std::vector<std::uint32_t> first_equal_launches(const Graph& graph, const Schedule& schedule,
                                                              const std::vector<std::uint32_t>& first_equal_kernels);

}  // namespace ftax
