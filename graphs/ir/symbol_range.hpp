#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

#include "ftax/graph.hpp"
#include "graphs/base/checked_math.hpp"
#include "graphs/base/excerpt.hpp"

namespace ftax {

/// Symbol of cached tokens; the only symbol that may be 0.
inline constexpr std::string_view cached_tokens = "past";

/// Returns the value of a range's symbol, or of a sum of symbols ("past+seq"); nullopt if one is unbound.
[[nodiscard]] inline std::optional<std::int64_t> value_of(const SymbolRange& range, const ShapeBindings& bindings) {
    std::int64_t sum = 0;
    for (const std::string_view symbol : words_of(range.symbol, '+')) {
        const auto given = bindings.find(symbol);
        if (given == bindings.end()) return std::nullopt;
        sum = checked_add(sum, given->second);
    }
    return sum;
}

/// Returns a warning if a value is outside the range of its symbol; otherwise empty.
[[nodiscard]] inline std::string range_warning(const SymbolRange& range, std::int64_t value) {
    if (value >= range.least && value <= range.greatest) return {};
    if (value < range.least && range.greatest == SymbolRange{}.greatest)
        return fmt::format("{} = {} is less than the {} that the model allows", range.symbol, value, range.least);
    return fmt::format("{} = {} lies outside the {} to {} that the model allows", range.symbol, value, range.least,
                       range.greatest);
}

}  // namespace ftax
