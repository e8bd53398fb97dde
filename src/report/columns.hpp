#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/report/table.hpp"

/// A report defines each quantity once, as a column; the terminal's table, JSON, CSV and pages select columns by key.
namespace ftax::report {

using Json = nlohmann::ordered_json;

/// Format of a value in tables and pages. JSON and CSV contain the exact value in SI units.
enum class Unit : std::uint8_t {
    text,          ///< aligned to the left
    plain,         ///< a whole number, or the value's own text
    milliseconds,  ///< seconds shown in ms; pages choose a suitable unit
    seconds,       ///< pages choose a suitable unit
    duration,      ///< seconds in a suitable unit
    significant,   ///< three significant digits
    share,         ///< per cent
    bytes,
    amount,  ///< "4.09 G"
    bars,    ///< pages only: an object of shares from 0 to 1 by look
};

/// One cell of a report. A default value and a nullopt are absent: JSON has no such field. A nullptr is null in JSON.
struct Value {
    Value() = default;
    template <class T>
    requires(!std::same_as<T, Value>) Value(const T& value, Tone cell_tone = Tone::plain)
        : exact(json_of(value)), tone(cell_tone) {}
    template <class T>
    Value(const T& value, std::optional<std::string> text, Tone cell_tone = Tone::plain)
        : exact(json_of(value)), shown(std::move(text)), tone(cell_tone) {}

    Json exact = Json::value_t::discarded;
    std::optional<std::string> shown{};  ///< text in tables and pages instead of the value in the column's unit
    Tone tone = Tone::plain;

  private:
    template <class T>
    static Json json_of(const T& value) {
        if constexpr (std::is_enum_v<T>) {
            return name_of(value);
        } else if constexpr (requires { value.has_value(); }) {
            return value ? json_of(*value) : Json(Json::value_t::discarded);
        } else {
            return value;
        }
    }
};

/// A value for tables and pages only.
[[nodiscard]] inline Value shown(std::string text, Tone tone = Tone::plain) {
    return {Json(Json::value_t::discarded), std::optional(std::move(text)), tone};
}

/// Returns the JSON of a result: the version of its schema, its fields in their order, and its warnings.
[[nodiscard]] std::string document(const Json& fields);
[[nodiscard]] std::string document(Json fields, const std::vector<std::string>& warnings);

template <class Row>
struct Column {
    Column(std::string own_key, std::string own_title, Unit own_unit, std::function<Value(const Row&)> own_value)
        : Column(std::move(own_key), std::move(own_title), own_unit, "", std::move(own_value)) {}
    Column(std::string own_key, std::string own_title, Unit own_unit, std::string_view own_meaning,
           std::function<Value(const Row&)> own_value)
        : key(std::move(own_key)),
          title(std::move(own_title)),
          unit(own_unit),
          value(std::move(own_value)),
          meaning(own_meaning) {}

    std::string key;    ///< in JSON and CSV, and on a page for scripts
    std::string title;  ///< in tables
    Unit unit;
    std::function<Value(const Row&)> value;
    std::string_view meaning;  ///< in the JSON schemas and docs/outputs.md, which `make golden` writes
};

/// Selected columns of the rows of a report.
struct Grid {
    struct Head {
        std::string key, title;
        Unit unit;
        std::string_view meaning{};
    };
    std::vector<Head> heads;
    std::vector<std::vector<Value>> rows;

    [[nodiscard]] std::string print(Style style) const;               ///< for the terminal
    [[nodiscard]] std::string csv() const;                            ///< with a header
    [[nodiscard]] Json json() const;                                  ///< an object for each row
    [[nodiscard]] std::string page_table(std::string_view id) const;  ///< sortable, with exact values for scripts
    void drop_if_empty(std::size_t column);                           ///< a column without a value in any row
};

/// One entry of a selection: "key", "name=key" to write the column under another name, "=key" to give it none on a
/// page, "?key" for a column that is omitted if no row has a value. In JSON, "a.b=key" is the field b of an object a.
struct Selected {
    std::string name, key;
    bool is_optional = false;
};
[[nodiscard]] std::vector<Selected> parse_selection(std::string_view keys);

template <class Row>
class Columns {
  public:
    Columns(std::initializer_list<Column<Row>> columns) : columns_(columns) {}

    void add(Column<Row> column) { columns_.push_back(std::move(column)); }

    /// Adds the columns of a part of the row: a member, a pointer or an optional. Those of an absent part are absent.
    template <class Part, class Of>
    Columns&& including(const Columns<Part>& columns, Of part) && {
        for (const Column<Part>& column : columns.all()) {
            add({column.key, column.title, column.unit, column.meaning, [value = column.value, part](const Row& row) {
                     const auto& own = std::invoke(part, row);
                     if constexpr (requires { *own; }) {
                         return own ? value(*own) : Value();
                     } else {
                         return value(own);
                     }
                 }});
        }
        return std::move(*this);
    }

    [[nodiscard]] const std::vector<Column<Row>>& all() const { return columns_; }

    /// Selects the columns named by the space-separated `keys`, in that order; all if empty.
    template <class Rows>
    [[nodiscard]] Grid select(const Rows& rows, std::string_view keys = "") const {
        Grid grid;
        std::vector<const Column<Row>*> chosen;
        std::vector<std::size_t> optional;
        const auto choose = [&](const Column<Row>& column, const std::string& name) {
            grid.heads.push_back({name, column.title, column.unit, column.meaning});
            chosen.push_back(&column);
        };
        for (const Selected& selected : parse_selection(keys)) {
            if (selected.is_optional) optional.push_back(chosen.size());
            choose(find(selected.key), selected.name);
        }
        if (keys.empty()) {
            for (const Column<Row>& column : columns_) choose(column, column.key);
        }
        for (const Row& row : rows) {
            std::vector<Value>& cells = grid.rows.emplace_back();
            for (const Column<Row>* column : chosen) cells.push_back(column->value(row));
        }
        for (auto column = optional.rbegin(); column != optional.rend(); ++column) grid.drop_if_empty(*column);
        return grid;
    }

    /// The same in one form of a result.
    [[nodiscard]] std::string print(const auto& rows, std::string_view keys, Style style) const {
        return select(rows, keys).print(style);
    }
    [[nodiscard]] std::string csv(const auto& rows, std::string_view keys = "") const {
        return select(rows, keys).csv();
    }
    [[nodiscard]] Json json_rows(const auto& rows, std::string_view keys = "") const {
        return select(rows, keys).json();
    }

    /// Returns the fields of one row.
    [[nodiscard]] Json json(const Row& row, std::string_view keys = "") const {
        return std::move(select(std::span(&row, 1), keys).json()[0]);
    }

  private:
    /// The last of a key holds, so that a report can replace a column that it includes.
    const Column<Row>& find(std::string_view key) const {
        for (auto column = columns_.rbegin(); column != columns_.rend(); ++column)
            if (column->key == key) return *column;
        throw std::logic_error("a report has no column " + std::string(key));
    }

    std::vector<Column<Row>> columns_;
};

}  // namespace ftax::report
