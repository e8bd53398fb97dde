#include "src/core/control_flow.hpp"

#include <fmt/format.h>

namespace ftax {
namespace {

constexpr std::size_t most_warnings = 100;  ///< a hostile file must not fill memory with complaints

void warn(Graph& graph, std::string message) {
    if (graph.warnings.size() < most_warnings) graph.warnings.push_back(std::move(message));
}

}  // namespace

bool take_branch(Graph& graph, const ImportOptions& options, const std::string& name, std::optional<bool> condition,
                 std::size_t then_operators, std::size_t else_operators, bool repeated) {
    if (const auto option = options.branches.find(name); option != options.branches.end()) return option->second;
    if (condition) return *condition;
    // Exporters guard the unusual case (a dimension that is 1) with the shorter branch.
    const bool taken = then_operators > else_operators;
    graph.undecided.push_back({name, taken});
    if (!repeated) {
        warn(graph, fmt::format("node '{}': the condition depends on data; its {} branch is taken (--branch {}={})",
                                name, taken ? "then" : "else", name, taken ? "else" : "then"));
    }
    return taken;
}

std::int64_t passes_of(Graph& graph, const ImportOptions& options, const std::string& name,
                       std::optional<std::int64_t> known) {
    if (const auto option = options.trip_counts.find(name); option != options.trip_counts.end()) return option->second;
    if (known) return *known;
    warn(graph,
         fmt::format("node '{}': the number of passes is not known; one pass is counted (--trip {}=N)", name, name));
    return 1;
}

}  // namespace ftax
