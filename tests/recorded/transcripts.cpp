#include "tests/recorded/transcripts.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "graphs/files/file.hpp"
#include "tests/recorded/reports/outcome.hpp"

namespace ftax::test {
namespace {

/// Numbers are equal to this share, or to a unit of the last digit that both print.
constexpr double tolerance = 1e-6;
constexpr std::size_t shown_lines = 8;

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1);
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end + 1);
    }
    return lines;
}

struct Number {
    double value = 0, unit = 0;  ///< of the last digit
    std::size_t length = 0;
};

/// The number at the beginning of a text; a length of 0 if there is none.
Number number_at(std::string_view text) {
    Number number;
    if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) return number;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
    if (error != std::errc{}) return number;
    number.length = static_cast<std::size_t>(end - text.data());
    const std::string_view digits = text.substr(0, std::min(number.length, text.find_first_of("eE")));
    const std::size_t point = digits.find('.');
    const double places = point < digits.size() ? static_cast<double>(digits.size() - point - 1) : 0;
    double mantissa = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), mantissa);
    number.unit = std::pow(10, -places) * (mantissa == 0 ? 1 : number.value / mantissa);
    return number;
}

}  // namespace

bool is_same(std::string_view a, std::string_view b) {
    while (!a.empty() && !b.empty()) {
        const Number x = number_at(a), y = number_at(b);
        if ((x.length == 0) != (y.length == 0)) return false;
        if (x.length == 0) {
            if (a[0] != b[0]) return false;
            a.remove_prefix(1);
            b.remove_prefix(1);
            continue;
        }
        const bool has_fraction = x.unit < 1 && y.unit < 1;
        const double unit = has_fraction ? 1.001 * std::max(x.unit, y.unit) : 0;
        if (std::abs(x.value - y.value) > std::max(tolerance * std::abs(x.value), unit)) return false;
        a.remove_prefix(x.length);
        b.remove_prefix(y.length);
    }
    return a.empty() && b.empty();
}

std::string differences(std::string_view recorded, std::string_view now, Numbers numbers) {
    const auto before = lines_of(recorded), after = lines_of(now);
    std::string text;
    std::size_t different = 0;
    for (std::size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
        const bool has_both = i < before.size() && i < after.size();
        if (has_both && (numbers == Numbers::exact ? before[i] == after[i] : is_same(before[i], after[i]))) continue;
        if (++different > shown_lines) continue;
        if (i < before.size()) text += fmt::format("\n  {} - {}", i + 1, before[i].substr(0, 300));
        if (i < after.size()) text += fmt::format("\n  {} + {}", i + 1, after[i].substr(0, 300));
    }
    return different > shown_lines ? text + fmt::format("\n  and {} lines more", different - shown_lines) : text;
}

void check_transcript(const std::filesystem::path& path, const std::string& now, Numbers numbers) {
    const bool update = std::getenv("FTAX_UPDATE_GOLDEN");
    const std::string different = differences(read(path), now, numbers);
    if (update && !different.empty()) {
        MESSAGE(path.filename().string(), different);
        write_file(path.string(), now);
    } else {
        CHECK_MESSAGE(different.empty(), path.filename().string(), " changed; `make golden` records it", different);
    }
}

void check_report(const std::string& name, const std::string& now) {
    check_transcript(std::string(FTAX_SOURCE_DIR) + "/tests/recorded/transcripts/made/" + name, now, Numbers::exact);
}

}  // namespace ftax::test
