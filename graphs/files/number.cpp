#include "graphs/files/number.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "graphs/base/excerpt.hpp"
#include "graphs/files/escape.hpp"

namespace ftax {
namespace {

template <class T>
std::optional<T> parse_whole_text(std::string_view text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
    const std::optional<double> value = parse_whole_text<double>(text);
    return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
    if (const auto value = parse_whole_text<std::int64_t>(text)) return value;
    const std::optional<double> decimal = parse_number(text);
    constexpr double exact_limit = 9007199254740992.0;  // 2^53: every whole number below it is a double
    if (!decimal || *decimal != std::trunc(*decimal) || std::abs(*decimal) > exact_limit) return std::nullopt;
    return static_cast<std::int64_t>(*decimal);
}

std::string format_number(double value) {
    std::array<char, 32> buffer;
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    return {buffer.data(), end};
}

const Quantity& time_quantity() {
    static const Quantity quantity{"a time from 1e-9 s to 1e9 s with its unit (us, ms or s), such as 12ms",
                                   1e-9,
                                   1e9,
                                   {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
    return quantity;
}

std::string read_quantity(std::string_view text, const Quantity& quantity, double& value) {
    for (const auto& [unit, factor] : quantity.units) {
        if (!text.ends_with(unit)) continue;
        const auto number = parse_number(text.substr(0, text.size() - unit.size()));
        if (!number || !(quantity.least <= *number * factor && *number * factor <= quantity.most)) break;
        value = *number * factor;
        return "";
    }
    return fmt::format("{} is not {}", escape_terminal(excerpt(text)), quantity.what);
}

}  // namespace ftax
