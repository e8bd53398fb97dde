#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Says which input or output `op` lacks of those that its kind cannot do without; nullopt where it has them all.
[[nodiscard]] std::optional<std::string> missing_operand(const Op& op);

/// Throws Error{model} naming the first operator that lacks an operand, whose perm (transpose) or axes (slice, roll)
/// its input does not have, or that convolves what has no channels.
void check_operands(const Graph& graph);

/// How many of its first inputs a scatter (index_copy, slice_scatter …) writes into: one, or its attribute `bases`.
[[nodiscard]] std::size_t scatter_bases(const Op& scatter);
/// The operands of a scatter whose elements it writes into others, one for each that it writes into: its last. Empty
/// where it makes a new tensor, or writes a number everywhere.
[[nodiscard]] std::vector<TensorId> scattered(const Graph& graph, const Op& scatter);

}  // namespace ftax
