#include "graphs/files/csv.hpp"

#include <fmt/format.h>

#include <unordered_set>

#include "graphs/base/named.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/files/escape.hpp"
#include "graphs/files/file.hpp"
#include "graphs/files/number.hpp"

namespace ftax {
namespace {

constexpr std::size_t most_columns = 100'000;

/// Reads cells one after the other from a buffer, unquoting each in place: its text never grows.
class CellReader {
  public:
    CellReader(std::vector<char>& text, const std::string& origin)
        : at_(text.data()), end_(text.data() + text.size()), origin_(origin) {}

    [[nodiscard]] bool at_end() const { return at_ == end_; }
    [[nodiscard]] std::size_t line() const { return line_; }
    [[nodiscard]] bool at_line_end() const {
        return *at_ == '\n' || (*at_ == '\r' && end_ - at_ > 1 && at_[1] == '\n');
    }

    void skip_line_end() {
        at_ += *at_ == '\r' ? 2 : 1;
        ++line_;
    }

    /// Returns the cell at the current position and skips the following comma; `more` is set to whether there was one.
    std::string_view next(bool& more) {
        more = false;
        if (at_end()) return {};  // the file ends after a comma
        const std::string_view cell = *at_ == '"' ? quoted() : plain();
        more = !at_end() && *at_ == ',';
        if (more) ++at_;
        return cell;
    }

    [[noreturn]] void fail(std::size_t line, std::string_view what) const {
        throw_error(ErrorCode::profile, "{}:{}: {}", origin_, line, what);
    }

  private:
    std::string_view plain() {
        char* const begin = at_;
        while (!at_end() && *at_ != ',' && !at_line_end()) ++at_;
        return {begin, static_cast<std::size_t>(at_ - begin)};
    }

    std::string_view quoted() {
        const std::size_t first_line = line_;
        char* const begin = ++at_;
        char* out = begin;
        for (;; ++at_) {
            if (at_end()) fail(first_line, "unclosed quote");
            if (*at_ == '\n') ++line_;
            if (*at_ == '"') {
                if (end_ - at_ < 2 || at_[1] != '"') break;
                ++at_;
            }
            *out++ = *at_;
        }
        ++at_;
        if (!at_end() && *at_ != ',' && !at_line_end()) fail(line_, "text after a closing quote");
        return {begin, static_cast<std::size_t>(out - begin)};
    }

    char* at_;
    char* end_;
    const std::string& origin_;
    std::size_t line_ = 1;
};

/// Whether a spreadsheet would take the text for a formula. Numbers are none, though they may begin with a minus.
bool looks_like_formula(std::string_view cell) {
    return !cell.empty() && std::string_view("=+-@\t\r").find(cell[0]) != std::string_view::npos && !parse_number(cell);
}

void append_cell(std::string& text, std::string_view cell) {
    const std::string safe = (looks_like_formula(cell) ? "'" : "") + escape_terminal(cell);
    if (safe.find_first_of(",\"") == std::string::npos) return void(text += safe);
    text += '"';
    for (const char c : safe) text.append(c == '"' ? 2 : 1, c);
    text += '"';
}

}  // namespace

CsvTable::CsvTable(std::string_view text, std::string origin) : origin_(std::move(origin)) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    text_.assign(text.begin(), text.end());
    CellReader reader(text_, origin_);
    while (!reader.at_end()) {
        if (reader.at_line_end()) {
            reader.skip_line_end();
            continue;
        }
        const std::size_t first_line = reader.line();
        const bool is_header = header_.empty();
        const std::size_t most = is_header ? most_columns : header_.size();
        std::size_t count = 0;
        for (bool more = true; more; ++count) {
            const std::string_view cell = reader.next(more);
            if (count < most) (is_header ? header_ : cells_).push_back(cell);
        }
        if (!reader.at_end()) reader.skip_line_end();
        if (is_header && count > most) throw_error(ErrorCode::limit, "{}: more than {} columns", origin_, most);
        if (is_header) {
            if (header_.size() == 1 && header_[0].find_first_of(";\t") != std::string_view::npos)
                reader.fail(first_line, "separate columns by commas, and write decimals with a point: 8,2.5");
            continue;
        }
        if (count != most) reader.fail(first_line, fmt::format("{} cells where the header has {}", count, most));
        lines_.push_back(first_line);
    }
    if (header_.empty()) throw_error(ErrorCode::profile, "{}: no header line", origin_);
    std::unordered_set<std::string_view> names;
    for (const std::string_view name : header_)
        if (!name.empty() && !names.insert(name).second)
            throw_error(ErrorCode::profile, "{}:1: the column {} occurs twice", origin_,
                        escape_terminal(excerpt(name)));
}

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
    return enumerator_named<std::size_t>(header_, name);
}

std::string_view CsvTable::cell(std::size_t row, std::string_view name) const {
    const auto at = column(name);
    return at ? this->row(row)[*at] : std::string_view{};
}

void CsvTable::require(std::initializer_list<std::string_view> columns) const {
    for (const std::string_view name : columns) {
        if (column(name)) continue;
        throw_error(ErrorCode::profile, "{}: no column {}; needed are {}", origin_, name, fmt::join(columns, ", "));
    }
}

CsvTable read_csv(const std::string& path) {
    return {read_file(path, std::uint64_t{1} << 30), escape_terminal(path)};
}

void append_csv_row(std::string& text, std::span<const std::string> cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (i > 0) text += ',';
        append_cell(text, cells[i]);
    }
    text += '\n';
}

}  // namespace ftax
