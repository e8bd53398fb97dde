#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ftax {

/// Parses all of `text` as a finite decimal number, independent of the locale; nullopt otherwise (empty, NaN, 1e400).
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

/// Parses all of `text` as an integer, also as decimal ("8.0", of pandas columns with gaps); nullopt if there is none.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

/// Returns the shortest text that parses to the same number, with a decimal point in every locale.
[[nodiscard]] std::string format_number(double value);

}  // namespace ftax
