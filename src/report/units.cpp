#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "src/report/table.hpp"

namespace ftax::report {
namespace {

/// Prefixes of powers of 1000, from `first_power` on.
std::string scaled(double value, std::span<const std::string_view> prefixes, int first_power) {
    const double magnitude = std::abs(value);
    const bool whole = magnitude < 1000 && value == std::floor(value);
    if (value == 0 || (whole && first_power == 0))
        return fmt::format("{:.0f} {}", value, prefixes[static_cast<std::size_t>(-first_power)]);
    // 999.6 rounds to 1000, which belongs to the next prefix.
    int step = static_cast<int>(std::floor(std::log10(magnitude * 1.0005) / 3)) - first_power;
    step = std::clamp(step, 0, static_cast<int>(prefixes.size()) - 1);
    return fmt::format("{} {}", significant(value / std::pow(1000.0, step + first_power)),
                       prefixes[static_cast<std::size_t>(step)]);
}

}  // namespace

std::string significant(double value) {
    const double magnitude = std::abs(value);
    const int digits = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : magnitude >= 0.9995 ? 2 : 3;
    return fmt::format("{:.{}f}", value, digits);
}

std::string duration(double seconds) {
    static constexpr std::array<std::string_view, 4> units{"ns", "µs", "ms", "s"};
    return scaled(seconds, units, -3);
}

std::string milliseconds(double seconds) {
    return significant(seconds * 1e3);
}

std::string byte_size(double bytes) {
    static constexpr std::array<std::string_view, 6> units{"B", "kB", "MB", "GB", "TB", "PB"};
    return scaled(bytes, units, 0);
}

std::string quantity(double value, std::string_view unit) {
    static constexpr std::array<std::string_view, 7> prefixes{"", "k", "M", "G", "T", "P", "E"};
    return scaled(value, prefixes, 0).append(unit);
}

std::string count(double value) {
    std::string text = quantity(value, "");
    if (text.ends_with(' ')) text.pop_back();
    return text;
}

std::string percent(double fraction) {
    const double tenths = std::floor(fraction * 1000 + 1e-9);
    return tenths >= 1000 ? "100 %" : fmt::format("{:.1f} %", tenths / 10);
}

}  // namespace ftax::report
