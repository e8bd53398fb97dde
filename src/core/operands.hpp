#pragma once

#include <optional>
#include <string>

#include "ftax/graph.hpp"

namespace ftax {

/// Says which input or output `op` lacks of those that its kind cannot do without; nullopt where it has them all.
[[nodiscard]] std::optional<std::string> missing_operand(const Op& op);

/// Throws Error{model} naming the first operator that lacks an operand, whose perm (transpose) or axes (slice, roll)
/// its input does not have, or that convolves what has no channels.
void check_operands(const Graph& graph);

}  // namespace ftax
