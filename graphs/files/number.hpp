#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ftax {

/// Parses all of `text` as a finite decimal number, independent of the locale; nullopt otherwise (empty, NaN, 1e400).
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

/// Parses all of `text` as an integer, also as decimal ("8.0", of pandas columns with gaps); nullopt if there is none.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text);

/// Returns the shortest text that parses to the same number, with a decimal point in every locale.
[[nodiscard]] std::string format_number(double value);

/// A number that people write.
struct Quantity {
    std::string what;  ///< with its limits: "a share from 0 to 1"
    double least = 0, most = 0;
    std::vector<std::pair<std::string_view, double>> units{{"", 1}};  ///< and their factors, the longest first
};

/// A time with its unit.
[[nodiscard]] const Quantity& time_quantity();

/// Sets `value`, or returns why a text is not such a quantity: "-1 is not a share from 0 to 1".
[[nodiscard]] std::string read_quantity(std::string_view text, const Quantity& quantity, double& value);

}  // namespace ftax
