#pragma once

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>

#include "graphs/base/embedded.hpp"
#include "graphs/base/named.hpp"

namespace ftax {

/// The cells of a row of data, read from the left.
class DataRow {
  public:
    explicit DataRow(std::string_view text) : rest_(text) {}

    [[nodiscard]] std::string_view text(char separator = '\t') {
        const std::string_view cell = rest_.substr(0, rest_.find(separator));
        rest_.remove_prefix(std::min(cell.size() + 1, rest_.size()));
        return cell;
    }
    /// `otherwise` for an empty cell.
    [[nodiscard]] double number(double otherwise = 0) {
        const std::string_view cell = text();
        std::from_chars(cell.data(), cell.data() + cell.size(), otherwise);
        return otherwise;
    }
    /// Position of the cell among `names`, which are separated by spaces. Throws std::logic_error for any other cell.
    template <class Enum>
    [[nodiscard]] Enum choice(std::string_view names) {
        const std::string_view name = text();
        std::size_t position = 0;
        for (DataRow rest(names); !rest.ends(); ++position)
            if (rest.text(' ') == name) return static_cast<Enum>(position);
        throw std::logic_error("a table has the unknown name " + std::string(name));
    }
    [[nodiscard]] bool ends() const { return rest_.empty(); }

  private:
    std::string_view rest_;
};

/// Calls `visit` with each row below the header of a file.
template <class Visit>
void for_each_data_row(std::string_view text, const Visit& visit) {
    DataRow lines(text);
    static_cast<void>(lines.text('\n'));
    while (!lines.ends()) visit(DataRow(lines.text('\n')));
}

/// The cells of one column of an embedded file, the leftmost of which is 0.
[[nodiscard]] inline std::vector<std::string_view> data_column(std::string_view path, std::size_t column) {
    std::vector<std::string_view> cells;
    for_each_data_row(embedded_text(path),
                      [&](DataRow row) { cells.push_back(words_of(row.text('\n'), '\t').at(column)); });
    return cells;
}

}  // namespace ftax
