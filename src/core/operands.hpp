#pragma once

#include <optional>
#include <string>

#include "ftax/graph.hpp"

namespace ftax {

/// Says which input or output `op` lacks of those that its kind cannot do without; nullopt where it has them all.
[[nodiscard]] std::optional<std::string> missing_operand(const Op& op);

/// Throws Error{model} naming the first operator that lacks an operand, or whose perm (transpose) or axes (slice) its
/// input does not have.
void check_operands(const Graph& graph);

}  // namespace ftax
