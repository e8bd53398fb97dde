#pragma once

#include <cstdint>
#include <vector>

#include "ftax/graph.hpp"
#include "predictors/timeline/schedule.hpp"

namespace ftax {

/// Gives for each kernel of a schedule the first one that has its shape whatever the symbols are bound to, often
/// itself: networks repeat their blocks, and a kernel needs to be timed once per binding. Expressions are kept in a
/// normal form, so that kernels are compared without binding anything.
[[nodiscard]] std::vector<std::uint32_t> first_equal_kernels(const Graph& graph, const Schedule& schedule);

/// The same for launches: of equal kernels, dispatched alike. Those that the CPU computes are equal to none.
[[nodiscard]] std::vector<std::uint32_t> first_equal_launches(const Graph& graph, const Schedule& schedule,
                                                              const std::vector<std::uint32_t>& first_equal_kernels);

}  // namespace ftax
