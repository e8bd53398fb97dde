#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "ftax/import.hpp"

namespace ftax {

/// The names of loops and conditions that importers meet on this thread while it lives.
class NamesMet {
  public:
    NamesMet();
    ~NamesMet();
    NamesMet(const NamesMet&) = delete;
    NamesMet& operator=(const NamesMet&) = delete;
    /// Throws Error{usage} for a name of an option that none of them has.
    void require_loop(const std::string& name) const;
    void require_condition(const std::string& name) const;

  private:
    friend std::optional<std::int64_t> given_passes(const ImportOptions& options, const std::string& name);
    friend std::optional<bool> given_branch(const ImportOptions& options, const std::string& name);
    std::set<std::string> loops_, conditions_;
};

/// Adds a warning, up to a hundred: a hostile file must not fill memory with complaints.
void warn(Graph& graph, std::string message);

/// The trip count or branch that the options give for a name.
[[nodiscard]] std::optional<std::int64_t> given_passes(const ImportOptions& options, const std::string& name);
[[nodiscard]] std::optional<bool> given_branch(const ImportOptions& options, const std::string& name);

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
