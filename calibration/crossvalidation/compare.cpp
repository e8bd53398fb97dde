#include "calibration/crossvalidation/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/io/number.hpp"

namespace ftax::folds {
namespace {

constexpr std::size_t most_lines = 10;
constexpr double relative_tolerance = 0.15;
constexpr double whole_tolerance = 5;  // counts of rows, and the share inside the interval in %

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1);
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end + 1);
    }
    return lines;
}

/// Cells of a CSV line or of a row of a table in Markdown.
std::vector<std::string_view> cells_of(std::string_view line) {
    std::vector<std::string_view> cells;
    while (true) {
        const std::size_t end = line.find_first_of(",| ");
        cells.push_back(line.substr(0, end));
        if (end == std::string_view::npos) return cells;
        line.remove_prefix(end + 1);
    }
}

bool equal(std::string_view a, std::string_view b) {
    if (a == b) return true;
    const auto number = [](std::string_view text) {
        return parse_number(text.starts_with('+') ? text.substr(1) : text);
    };
    const auto x = number(a), y = number(b);
    if (!x || !y) return false;
    const std::size_t point = a.find('.');
    if (point == std::string_view::npos) return std::abs(*x - *y) <= whole_tolerance;
    const double points = a.size() - point > 2 ? 0.02 : 2;  // fractions have four digits, percents one
    return std::abs(*x - *y) <= std::max(points, relative_tolerance * std::max(std::abs(*x), std::abs(*y)));
}

}  // namespace

std::vector<std::string> differences(std::string_view committed, std::string_view now) {
    const auto before = lines_of(committed), after = lines_of(now);
    if (before.size() != after.size()) {
        return {fmt::format("{} lines are committed, there are {} now", before.size(), after.size())};
    }
    std::vector<std::string> found;
    for (std::size_t i = 0; i < before.size() && found.size() < most_lines; ++i) {
        const auto a = cells_of(before[i]), b = cells_of(after[i]);
        if (!std::equal(a.begin(), a.end(), b.begin(), b.end(), equal)) {
            found.push_back(fmt::format("committed: {}\nnow:       {}", before[i], after[i]));
        }
    }
    return found;
}

}  // namespace ftax::folds
