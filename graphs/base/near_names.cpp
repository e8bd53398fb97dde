#include "graphs/base/near_names.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"

namespace ftax {
namespace {

/// Levenshtein distance. Source: Wagner and Fischer 1974, with one row of the table.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
        }
    }
    return row.back();
}

}  // namespace

std::string lower_case(std::string_view name) {
    std::string result(name);
    for (char& c : result)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return result;
}

bool has_word(std::string_view names, std::string_view name) {
    while (!names.empty()) {
        const auto [first, others] = split_at(names, ' ');
        if (first == name) return true;
        names = others;
    }
    return false;
}

std::string normalized_name(std::string_view name) {
    std::string result = lower_case(name);
    std::erase_if(result, [](char c) { return !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')); });
    return result;
}

std::vector<std::string> near_names(std::string_view name, std::span<const std::string> candidates, std::size_t count) {
    constexpr std::size_t longest_compared = 256;
    const std::string wanted = normalized_name(name.substr(0, longest_compared));
    std::vector<std::pair<std::size_t, std::string>> ranked;
    for (const std::string& candidate : candidates) {
        const std::string have = normalized_name(candidate);
        const std::size_t distance = edit_distance(wanted, have);
        const bool contained = wanted.size() >= 2 && have.find(wanted) != std::string::npos;
        const bool contains = have.size() >= 4 && wanted.find(have) != std::string::npos;
        if (contained || contains || distance <= wanted.size() / 3) ranked.emplace_back(distance, candidate);
    }
    std::ranges::sort(ranked);
    ranked.resize(std::min(ranked.size(), count));
    return mapped(ranked, [](auto& near) { return std::move(near.second); });
}

}  // namespace ftax
