#pragma once

#include <string_view>

#include "graphs/aten/aten_call.hpp"

namespace ftax {

/// Appends the canonical operators of one ATen call to `graph`; outputs must be tensors of the graph already. An
/// operator without a row in the table becomes OpKind::custom. Throws Error{model} when a required argument is missing
/// or wrong.
void append_aten(Graph& graph, const AtenCall& call);

/// Whether the table has a row for an operator, given as "aten::conv2d".
[[nodiscard]] bool is_known_aten(std::string_view target) noexcept;

}  // namespace ftax
