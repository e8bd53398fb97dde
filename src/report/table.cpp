#include "src/report/table.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "src/io/escape.hpp"

namespace ftax::report {
namespace {

/// Columns on a terminal: code points, for UTF-8 without wide characters.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string_view code_of(Tone tone) {
    static constexpr std::string_view codes[] = {"", "\x1b[1m", "\x1b[2m", "\x1b[33m"};
    return codes[static_cast<std::size_t>(tone)];
}

}  // namespace

Style standard_output_style() {
    const char* no_color = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return {.colour = isatty(STDOUT_FILENO) == 1 && (!no_color || *no_color == '\0') &&
                      (!terminal || std::string_view(terminal) != "dumb")};
}

std::string toned(std::string_view text, Tone tone, Style style) {
    if (!style.colour || tone == Tone::plain) return std::string(text);
    return std::string(code_of(tone)) + std::string(text) + "\x1b[0m";
}

void Table::add(std::vector<Cell> row) {
    for (Cell& cell : row) cell.text = escape_terminal(cell.text);
    rows_.push_back(std::move(row));
}

std::string Table::print(Style style) const {
    std::vector<std::size_t> widths;
    for (const Column& column : columns_) widths.push_back(width_of(column.title));
    for (const std::vector<Cell>& row : rows_) {
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i].text));
    }
    std::string text;
    const auto append = [&](std::size_t column, std::string_view cell, Tone tone) {
        const std::string space(widths[column] - width_of(cell), ' ');
        if (column > 0) text += "  ";
        if (columns_[column].align == Align::right) text += space;
        text += toned(cell, tone, style);
        if (columns_[column].align == Align::left && column + 1 < columns_.size()) text += space;
    };
    const auto end_line = [&] {
        text.erase(text.find_last_not_of(' ') + 1);
        text += '\n';
    };
    for (std::size_t i = 0; i < columns_.size(); ++i) append(i, columns_[i].title, Tone::quiet);
    end_line();
    for (const std::vector<Cell>& row : rows_) {
        for (std::size_t i = 0; i < row.size(); ++i) append(i, row[i].text, row[i].tone);
        end_line();
    }
    return text;
}

}  // namespace ftax::report
