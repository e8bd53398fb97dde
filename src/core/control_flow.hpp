#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ftax/import.hpp"

namespace ftax {

/// The branch of a condition that an importer follows: true for the then branch. In this order: what
/// ImportOptions::branches says, the condition where it is known, the branch with more operators. The last is an
/// assumption: it is noted in Graph::undecided and, unless `repeated`, warned of.
[[nodiscard]] bool take_branch(Graph& graph, const ImportOptions& options, const std::string& name,
                               std::optional<bool> condition, std::size_t then_operators, std::size_t else_operators,
                               bool repeated = false);

/// How often an importer follows a body that runs once per slice or while a condition holds: what
/// ImportOptions::trip_counts says, else `known`, else once, with a warning.
[[nodiscard]] std::int64_t passes_of(Graph& graph, const ImportOptions& options, const std::string& name,
                                     std::optional<std::int64_t> known);

}  // namespace ftax
