#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ftax/import.hpp"

namespace ftax {

/// Throws Error{usage} for a name in the options' trip counts or branches that the graph lacks.
void require_names(const Graph& graph, const ImportOptions& options);

/// Adds a warning, up to a hundred: a hostile file must not fill memory with complaints.
void warn(Graph& graph, std::string message);

/// The trip count or branch that the options give for a name, which joins those of the graph.
[[nodiscard]] std::optional<std::int64_t> given_passes(Graph& graph, const ImportOptions& options,
                                                       const std::string& name);
[[nodiscard]] std::optional<bool> given_branch(Graph& graph, const ImportOptions& options, const std::string& name);

/// Returns the branch that an importer follows: true for the then branch. In order of precedence:
/// ImportOptions::branches, the condition if known, the branch with more operators. The last is an assumption, recorded
/// in Graph::undecided and, unless `repeated`, reported in a warning.
[[nodiscard]] bool take_branch(Graph& graph, const ImportOptions& options, const std::string& name,
                               std::optional<bool> condition, std::size_t then_operators, std::size_t else_operators,
                               bool repeated = false);

/// Returns the trip count of a body that runs once per slice or while a condition holds: ImportOptions::trip_counts,
/// else `known`, else one, with a warning.
[[nodiscard]] std::int64_t passes_of(Graph& graph, const ImportOptions& options, const std::string& name,
                                     std::optional<std::int64_t> known);

}  // namespace ftax
