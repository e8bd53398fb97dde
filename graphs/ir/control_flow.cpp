#include "graphs/ir/control_flow.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/throw_error.hpp"

namespace ftax {
namespace {

constexpr std::size_t most_shown = 400;  ///< bytes of the names in a message
constexpr std::size_t most_warnings = 100;

template <class Value>
void require_known(const std::map<std::string, Value>& options, const std::set<std::string>& known,
                   std::string_view what) {
    for (const auto& [name, value] : options) {
        if (known.contains(name)) continue;
        const std::string names = fmt::format("{}", fmt::join(known, ", "));
        throw_error(ErrorCode::usage, "no {} '{}'; the model has {}", what, excerpt(name),
                    known.empty() ? "none" : names.substr(0, most_shown) + (names.size() > most_shown ? "…" : ""));
    }
}

}  // namespace

void warn(Graph& graph, std::string message) {
    if (graph.warnings.size() < most_warnings) graph.warnings.push_back(std::move(message));
}

void require_names(const Graph& graph, const ImportOptions& options) {
    require_known(options.trip_counts, graph.loops, "loop");
    require_known(options.branches, graph.conditions, "condition");
}

std::optional<std::int64_t> given_passes(Graph& graph, const ImportOptions& options, const std::string& name) {
    graph.loops.insert(name);
    const auto* passes = found_in(options.trip_counts, name);
    return passes == nullptr ? std::nullopt : std::optional(*passes);
}

std::optional<bool> given_branch(Graph& graph, const ImportOptions& options, const std::string& name) {
    graph.conditions.insert(name);
    const bool* branch = found_in(options.branches, name);
    return branch == nullptr ? std::nullopt : std::optional(*branch);
}

bool take_branch(Graph& graph, const ImportOptions& options, const std::string& name, std::optional<bool> condition,
                 std::size_t then_operators, std::size_t else_operators, bool repeated) {
    if (const auto branch = given_branch(graph, options, name)) return *branch;
    if (condition) return *condition;
    // Exporters guard the unusual case (a dimension that is 1) with the shorter branch.
    const bool taken = then_operators > else_operators;
    graph.undecided.push_back({name, taken});
    if (!repeated)
        warn(graph, fmt::format("node '{}': the condition depends on data; its {} branch is taken (--branch {}={})",
                                name, taken ? "then" : "else", name, taken ? "else" : "then"));
    return taken;
}

std::int64_t passes_of(Graph& graph, const ImportOptions& options, const std::string& name,
                       std::optional<std::int64_t> known) {
    if (const auto passes = given_passes(graph, options, name)) return *passes;
    if (known) return *known;
    warn(graph,
         fmt::format("node '{}': the number of passes is not known; one pass is counted (--trip {}=N)", name, name));
    return 1;
}

}  // namespace ftax
