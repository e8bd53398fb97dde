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

/// Throws Error{limit} naming `node` where it would be one operator more than `most` (ImportOptions::max_nodes).
[[noreturn]] void fail_room(std::string_view node, std::uint64_t most);
void check_room(const Graph& graph, std::uint64_t most, std::string_view node);

}  // namespace ftax
