#pragma once

#include <functional>
#include <ranges>
#include <type_traits>
#include <vector>

namespace ftax {

/// Returns what `function`, which may be a member, makes of each element.
template <class Range, class Function>
[[nodiscard]] auto mapped(Range&& range, Function function) {
    std::vector<std::remove_cvref_t<std::invoke_result_t<Function&, std::ranges::range_reference_t<Range>>>> results;
    if constexpr (std::ranges::sized_range<Range>) results.reserve(std::ranges::size(range));
    for (auto&& element : range) results.push_back(std::invoke(function, element));
    return results;
}

/// Returns the value of a key in a map, or null.
template <class Map, class Key>
[[nodiscard]] auto* found_in(Map& map, const Key& key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : &found->second;
}

/// Returns the value of a key in a map, or `otherwise`.
template <class Map, class Key>
[[nodiscard]] typename Map::mapped_type value_or(const Map& map, const Key& key, typename Map::mapped_type otherwise) {
    const auto* found = found_in(map, key);
    return found == nullptr ? otherwise : *found;
}

/// Returns the value of a key in a map, which `make` makes once.
template <class Map, class Key, class Make>
auto& kept_in(Map& map, const Key& key, const Make& make) {
    if (auto* known = found_in(map, key)) return *known;
    return map.emplace(key, make()).first->second;
}

}  // namespace ftax
