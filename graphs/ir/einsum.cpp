#include "graphs/ir/einsum.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"

namespace ftax {
namespace {

constexpr std::string_view ellipsis = "...";

bool has(std::string_view labels, char label) {
    return labels.find(label) != std::string_view::npos;
}

std::vector<std::string> split_terms(std::string_view text) {
    const auto words = words_of(text, ',');
    std::vector<std::string> terms(words.begin(), words.end());
    if (text.empty() || text.ends_with(',')) terms.emplace_back();
    return terms;
}

}  // namespace

EinsumEquation read_einsum(std::string_view text, std::span<const std::size_t> ranks) {
    std::string compact(text);
    std::erase(compact, ' ');
    const std::size_t arrow = compact.find("->");
    EinsumEquation equation{.operands = split_terms(std::string_view(compact).substr(0, arrow)),
                            .has_arrow = arrow != std::string::npos};
    std::vector<std::string>& terms = equation.operands;
    if (terms.size() != ranks.size()) {
        equation.problem = fmt::format("einsum '{}' for {} inputs", excerpt(compact), ranks.size());
        return equation;
    }
    std::string covered;  // labels of the dimensions that the ellipsis stands for
    for (std::size_t i = 0; i < terms.size(); ++i) {
        if (terms[i].find(ellipsis) == std::string::npos) continue;
        while (terms[i].size() - ellipsis.size() + covered.size() < ranks[i])
            covered += static_cast<char>(covered.size() + 1);
    }
    const auto spell_out = [&](std::string& term) {
        const std::size_t at = term.find(ellipsis);
        if (at != std::string::npos) term.replace(at, ellipsis.size(), covered);
    };
    std::string all;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        const std::string written = terms[i];
        spell_out(terms[i]);
        all += terms[i];
        if (terms[i].size() == ranks[i]) continue;
        equation.problem = fmt::format("einsum term '{}' does not fit rank {}", excerpt(written), ranks[i]);
        return equation;
    }
    if (equation.has_arrow) {
        equation.result = compact.substr(arrow + 2);
        spell_out(equation.result);
    } else {
        std::string sorted = all;
        std::ranges::sort(sorted);
        for (const char label : sorted) {
            const bool once = std::ranges::count(all, label) == 1;
            if (once || (has(covered, label) && !has(equation.result, label))) equation.result += label;
        }
    }
    if (!std::ranges::all_of(equation.result, [&](char label) { return has(all, label); }))
        equation.problem = fmt::format("einsum '{}' has an output label that no input has", excerpt(compact));
    return equation;
}

EinsumRoles einsum_roles(std::string_view a, std::string_view b, std::string_view result, std::string_view order) {
    EinsumRoles roles;
    for (const char label : order) {
        const bool shared = has(a, label) && has(b, label);
        std::string& role = shared && has(result, label) ? roles.batch
                            : shared                     ? roles.summed
                            : has(a, label)              ? roles.rows
                                                         : roles.columns;
        if (!has(role, label)) role += label;
    }
    return roles;
}

std::vector<std::int64_t> einsum_permutation(std::string_view from, std::string_view to) {
    return mapped(to, [&](char label) { return static_cast<std::int64_t>(from.find(label)); });
}

}  // namespace ftax
