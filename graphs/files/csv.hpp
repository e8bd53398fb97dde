#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ftax {

/// A CSV file in memory: every row has as many cells as the header. Cells are views into the table's own text.
class CsvTable {
  public:
    /// Parses RFC 4180 (also with LF, a byte order mark, blank lines). `origin` names the text in errors.
    /// Throws Error{profile} with the line for an unclosed quote, text after a quote, a row of different length, a
    /// duplicate column, or a missing header.
    CsvTable(std::string_view text, std::string origin);

    [[nodiscard]] const std::string& origin() const { return origin_; }
    [[nodiscard]] std::span<const std::string_view> header() const { return header_; }
    [[nodiscard]] std::size_t rows() const { return lines_.size(); }
    [[nodiscard]] std::span<const std::string_view> row(std::size_t index) const {
        return std::span(cells_).subspan(index * header_.size(), header_.size());
    }
    /// Returns the first line of a row, counted from 1.
    [[nodiscard]] std::size_t line(std::size_t row) const { return lines_[row]; }
    [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
    /// Returns a cell of a row by its column's name; empty if there is no such column.
    [[nodiscard]] std::string_view cell(std::size_t row, std::string_view column) const;
    /// Throws Error{profile} that names the first missing column, and all.
    void require(std::initializer_list<std::string_view> columns) const;

  private:
    std::string origin_;
    std::vector<char> text_;  ///< unquoted in place; a vector, so that moving the table leaves the views valid
    std::vector<std::string_view> header_;
    std::vector<std::string_view> cells_;  ///< row by row
    std::vector<std::size_t> lines_;
};

/// Reads and parses a CSV file. Throws what read_file and CsvTable throw.
[[nodiscard]] CsvTable read_csv(const std::string& path);

/// Appends one row and a line end. Cells are quoted as required by RFC 4180; text that a spreadsheet would interpret as
/// a formula is prefixed with an apostrophe, and control characters (including line ends) become visible escapes.
/// Source: OWASP, CSV injection.
void append_csv_row(std::string& text, std::span<const std::string> cells);

}  // namespace ftax
