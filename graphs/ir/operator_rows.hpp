#pragma once

#include <algorithm>
#include <deque>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/near_names.hpp"

namespace ftax {

/// Kinds whose operators are distinguished by their function.
[[nodiscard]] inline bool has_function(OpKind kind) {
    using enum OpKind;
    constexpr OpKind kinds[] = {pointwise, reduce, cumulative, sort};
    return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

/// Splits the rows of an operator table into one row per operator, sorted by `name`. The `name` of a grouped row lists
/// operators that differ only in name and function, separated by spaces, each followed by '=' and its function unless
/// that is its lower-case name. The names must have static lifetime.
template <class Row>
std::vector<Row> single_rows(std::span<const Row> grouped) {
    static std::deque<std::string> functions;  // storage of the rows' views
    std::vector<Row> rows;
    for (const Row& group : grouped) {
        for (const std::string_view word : words_of(group.name)) {
            Row& row = rows.emplace_back(group);
            row.name = word.substr(0, word.find('='));
            row.function = word.substr(std::min(row.name.size() + 1, word.size()));
            if (row.function.empty() && has_function(row.kind))
                row.function = functions.emplace_back(lower_case(word.substr(word.rfind(':') + 1)));
        }
    }
    std::ranges::sort(rows, [](const Row& a, const Row& b) { return a.name < b.name; });
    return rows;
}

/// Returns the row of that name in the result of single_rows(); nullptr if there is none.
template <class Row>
const Row* find_row(std::span<const Row> rows, std::string_view name) {
    const auto found = std::ranges::lower_bound(rows, name, {}, &Row::name);
    return found != rows.end() && found->name == name ? &*found : nullptr;
}

}  // namespace ftax
