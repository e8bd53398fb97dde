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

}  // namespace ftax
