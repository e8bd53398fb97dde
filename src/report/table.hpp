#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ftax::report {

enum class Align : std::uint8_t { left, right };
enum class Tone : std::uint8_t { plain, strong, quiet, warning };

/// Style of reports: `colour` enables terminal colours; tables are at most `width` columns wide, 0: unlimited.
struct Style {
    bool colour = false;
    std::size_t width = 0;
};

/// Style for standard output: on a terminal its width, and colours unless NO_COLOR (no-color.org) is set or TERM dumb.
[[nodiscard]] Style standard_output_style();

/// Adds the tone's terminal codes around `text` if the style has colours.
[[nodiscard]] std::string toned(std::string_view text, Tone tone, Style style);

/// Returns the first line of a report, its answer; empty without one.
[[nodiscard]] std::string print_verdict(std::string_view verdict, Style style);

/// Format quantities human-readably with three significant digits and a suitable unit, independent of the locale.
[[nodiscard]] std::string duration(double seconds);                       ///< "14.2 ms"
[[nodiscard]] std::string byte_size(double bytes);                        ///< "1.25 MB" (powers of 1000)
[[nodiscard]] std::string count(double value);                            ///< "4.09 G"
[[nodiscard]] std::string quantity(double value, std::string_view unit);  ///< "130 TFLOP/s"
[[nodiscard]] std::string percent(double fraction);                       ///< "98.7 %", rounded down below 100 %
[[nodiscard]] std::string significant(double value);                      ///< "14.2", "0.031", "1240"

/// A duration in milliseconds with a fixed unit, for easy comparison in columns.
[[nodiscard]] std::string milliseconds(double seconds);

struct Cell {
    std::string text;
    Tone tone = Tone::plain;
};

/// A table: columns as wide as their widest cell, two spaces between them. If that is too wide, text is truncated; the
/// last columns then continue below or, if there are many rows, are omitted, with a note. Cells are escaped.
class Table {
  public:
    struct Column {
        std::string title;
        Align align = Align::right;
        bool is_picture = false;  ///< last column, for terminals with room
        bool is_name = false;     ///< leading columns, repeated where the others continue below
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    void add(std::vector<Cell> row);
    [[nodiscard]] std::string print(Style style) const;

  private:
    /// Narrows columns to a terminal of that width; returns how many of them fit.
    std::size_t fit(std::span<const std::size_t> columns, std::vector<std::size_t>& widths, std::size_t width) const;
    [[nodiscard]] std::string print_columns(std::span<const std::size_t> columns,
                                            const std::vector<std::size_t>& widths, Style style) const;

    std::vector<Column> columns_;
    std::vector<std::vector<Cell>> rows_;
};

}  // namespace ftax::report
