#include "src/report/table.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "graphs/files/escape.hpp"

namespace ftax::report {
namespace {

/// Columns on a terminal: code points, for UTF-8 without wide characters.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(text, [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

/// The first code points of a text, the last one replaced by "…" where that is not all.
std::string shortened(std::string_view text, std::size_t width) {
    if (width_of(text) <= width) return std::string(text);
    std::size_t end = 0;
    for (std::size_t shown = 0; shown < width; ++end)
        if ((static_cast<unsigned char>(text[end]) & 0xC0) != 0x80 && ++shown == width) break;
    return std::string(text.substr(0, end)) + "…";
}

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

Style standard_output_style() {
    winsize size{};
    const bool on_terminal = isatty(STDOUT_FILENO) == 1;
    if (on_terminal) static_cast<void>(ioctl(STDOUT_FILENO, TIOCGWINSZ, &size));
    const char* no_color = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return {.colour =
                on_terminal && (!no_color || *no_color == '\0') && (!terminal || std::string_view(terminal) != "dumb"),
            .width = size.ws_col};
}

std::string print_verdict(std::string_view verdict, Style style) {
    return verdict.empty() ? "" : toned(escape_terminal(verdict), Tone::strong, style) + "\n";
}

std::string toned(std::string_view text, Tone tone, Style style) {
    static constexpr std::string_view codes[] = {"", "\x1b[1m", "\x1b[2m", "\x1b[33m"};
    if (!style.colour || tone == Tone::plain || text.empty()) return std::string(text);
    return fmt::format("{}{}\x1b[0m", codes[static_cast<std::size_t>(tone)], text);
}

void Table::add(std::vector<Cell> row) {
    for (Cell& cell : row) cell.text = escape_terminal(cell.text);
    rows_.push_back(std::move(row));
}

std::size_t Table::fit(std::span<const std::size_t> columns, std::vector<std::size_t>& widths,
                       std::size_t width) const {
    constexpr std::size_t least = 20, least_of_names = 36, gap = 2;  // the first column names the row
    std::size_t shown = columns.size();
    const auto excess = [&] {
        std::size_t total = shown == 0 ? 0 : gap * (shown - 1);
        for (const std::size_t column : columns.first(shown)) total += widths[column];
        return width > 0 && total > width ? total - width : 0;
    };
    while (excess() > 0) {
        std::size_t most = 0, longest = 0;  // what the column with the most text to spare can spare
        for (const std::size_t i : columns.first(shown)) {
            const std::size_t kept = std::min(widths[i], i == 0 ? least_of_names : least);
            if (columns_[i].align == Align::left && widths[i] - kept > most) most = widths[longest = i] - kept;
        }
        if (most > 0) {
            widths[longest] -= std::min(excess(), most);
        } else if (--shown == 1) {
            break;
        }
    }
    return shown;
}

std::string Table::print_columns(std::span<const std::size_t> columns, const std::vector<std::size_t>& widths,
                                 Style style) const {
    std::string text;
    const auto append = [&](std::size_t column, std::string_view cell, Tone tone) {
        const std::string cut = shortened(cell, widths[column]);
        const std::string space(widths[column] - width_of(cut), ' ');
        if (column != columns.front()) text += "  ";
        if (columns_[column].align == Align::right) text += space;
        text += toned(cut, tone, style);
        if (columns_[column].align == Align::left && column != columns.back()) text += space;
    };
    const auto end_line = [&] {
        text.erase(text.find_last_not_of(' ') + 1);
        text += '\n';
    };
    for (const std::size_t column : columns) append(column, columns_[column].title, Tone::quiet);
    end_line();
    for (const std::vector<Cell>& row : rows_) {
        for (const std::size_t column : columns) append(column, row[column].text, row[column].tone);
        end_line();
    }
    return text;
}

std::string Table::print(Style style) const {
    constexpr std::size_t few = 10;  // rows that may continue below
    std::vector<std::size_t> widths;
    for (const Column& column : columns_) widths.push_back(width_of(column.title));
    for (const std::vector<Cell>& row : rows_)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i].text));
    std::vector<std::size_t> columns(widths.size());
    std::iota(columns.begin(), columns.end(), std::size_t{0});
    const std::size_t needed = std::accumulate(widths.begin(), widths.end(), 2 * (widths.size() - 1));
    if (columns_.back().is_picture && needed > style.width) columns.pop_back();
    const auto names = std::find_if(columns_.begin(), columns_.end(), [](const Column& c) { return !c.is_name; });
    std::string text;
    while (true) {
        const std::size_t shown = fit(columns, widths, style.width), left_out = columns.size() - shown;
        text += print_columns(std::span(columns).first(shown), widths, style);
        if (left_out == 0) return text;
        const auto continued = columns.begin() + (names - columns_.begin());
        const auto rest = columns.begin() + static_cast<std::ptrdiff_t>(shown);
        if (rows_.size() > few || continued == columns.begin() || continued >= rest)
            return text + fmt::format("({} more column{}: widen the terminal, or --csv)\n", left_out,
                                      left_out == 1 ? "" : "s");
        columns.erase(continued, rest);
        text += '\n';
    }
}

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
