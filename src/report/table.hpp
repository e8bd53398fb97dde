#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ftax::report {

enum class Align : std::uint8_t { left, right };
enum class Tone : std::uint8_t { plain, strong, quiet, warning };

/// How reports look: `colour` adds terminal colours; a table keeps to `width` columns of the terminal, 0: to any.
struct Style {
    bool colour = false;
    std::size_t width = 0;
};

/// Style for standard output: on a terminal its width, and colours unless the environment variable NO_COLOR is set
/// (no-color.org) or TERM is dumb.
[[nodiscard]] Style standard_output_style();

/// Puts the tone's terminal codes around `text` when the style has colours.
[[nodiscard]] std::string toned(std::string_view text, Tone tone, Style style);

struct Cell {
    std::string text;
    Tone tone = Tone::plain;
};

/// A table: columns as wide as their widest cell, two spaces between them. Where that is too wide, text is cut short
/// and then the last columns are left out, which a line says. Cells are escaped.
class Table {
  public:
    struct Column {
        std::string title;
        Align align = Align::right;
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    void add(std::vector<Cell> row);
    [[nodiscard]] bool empty() const { return rows_.empty(); }
    [[nodiscard]] std::string print(Style style) const;

  private:
    /// Narrows the columns to a terminal of that width; returns how many of them are shown.
    std::size_t fit(std::vector<std::size_t>& widths, std::size_t width) const;

    std::vector<Column> columns_;
    std::vector<std::vector<Cell>> rows_;
};

}  // namespace ftax::report
