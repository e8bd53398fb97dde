#pragma once

#include <fmt/format.h>

#include <string>

#include "ftax/graph.hpp"

namespace ftax {

/// Says that a value lies outside the range of its symbol; empty where it lies inside.
[[nodiscard]] inline std::string range_warning(const SymbolRange& range, std::int64_t value) {
    if (value < range.least && range.greatest == SymbolRange{}.greatest) {
        return fmt::format("{} = {} is less than the {} that the program was exported for", range.symbol, value,
                           range.least);
    }
    if (value >= range.least && value <= range.greatest) return {};
    return fmt::format("{} = {} lies outside the {} to {} that the program was exported for", range.symbol, value,
                       range.least, range.greatest);
}

}  // namespace ftax
