#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ftax {

/// Parses a finite decimal number that fills `text`, whatever the locale; nullopt for anything else (empty, NaN,
/// 1e400).
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

/// Parses a whole number that fills `text`, also when written as a decimal ("8.0", as pandas does for a column with
/// gaps); nullopt when it is none or does not fit.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

/// Writes the shortest text that reads back as the same number, with a decimal point in every locale.
[[nodiscard]] std::string format_number(double value);

}  // namespace ftax
