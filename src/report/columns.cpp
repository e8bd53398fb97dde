#include "src/report/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "graphs/base/excerpt.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/json_document.hpp"
#include "graphs/files/number.hpp"
#include "src/report/page.hpp"

namespace ftax::report {
namespace {

bool is_absent(const Value& value) {
    return (value.exact.is_discarded() || value.exact.is_null()) && !value.shown;
}

std::string csv_text(const Json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_boolean()) return value ? "1" : "0";
    if (value.is_number_float()) return format_number(value);
    if (value.is_number()) return value.dump();
    std::string text;  // text of a list, such as warnings
    for (const Json& item : value.is_array() ? value : Json::array())
        text += (text.empty() ? "" : "; ") + item.get<std::string>();
    return text;
}

std::string number_text(double value, Unit unit, bool on_page) {
    switch (unit) {
        case Unit::milliseconds:
            return on_page ? duration(value) : milliseconds(value);
        case Unit::seconds:
            return on_page ? duration(value) : significant(value);
        case Unit::duration:
            return duration(value);
        case Unit::significant:
            return significant(value);
        case Unit::share:
            return percent(value);
        case Unit::bytes:
            return byte_size(value);
        case Unit::amount:
            return count(value);
        default:
            return fmt::format("{}", value);
    }
}

/// Host above device, as the upper and lower halves of blocks.
std::string bars_text(const Json& bars) {
    constexpr int width = 16;
    std::string text;
    for (int i = 0; i < width; ++i) {
        const bool host = bars.value("host", 0.0) * width > i, device = bars.value("device", 0.0) * width > i;
        text += host && device ? "█" : host ? "▀" : device ? "▄" : " ";
    }
    return text;
}

std::string text_of(const Value& value, Unit unit, bool on_page) {
    if (value.shown || is_absent(value)) return value.shown.value_or("");
    if (unit == Unit::bars) return bars_text(value.exact);
    if (value.exact.is_boolean()) return value.exact ? "yes" : "no";
    if (value.exact.is_number()) return number_text(value.exact, unit, on_page);
    return csv_text(value.exact);
}

/// Bars one below the other, each as long as its share; sorted by the first.
std::string bars_cell(const Json& bars) {
    std::string html = fmt::format("<td class=\"bars\" data-v=\"{}\">", bars.front().get<double>());
    for (const auto& [look, share] : bars.items())
        html += fmt::format("<span class=\"bar {}\" style=\"width:{:.2f}%\"></span>", look, 100 * share.get<double>());
    return html + "</td>";
}

std::string page_cell(const Value& value, Unit unit) {
    constexpr std::size_t longest_word = 16, longest_line = 40;  // on a phone, and anywhere
    if (is_absent(value)) return "<td></td>";
    if (unit == Unit::bars) return bars_cell(value.exact);
    const std::string text = text_of(value, unit, true);
    if (value.exact.is_number())
        return fmt::format("<td data-v=\"{}\">{}</td>", value.exact.get<double>(), escape_markup(text));
    return fmt::format("<td class=\"text{}{}\">{}</td>", text.size() > longest_word ? " words" : "",
                       text.size() > longest_line ? " long" : "", escape_markup(text));
}

}  // namespace

std::string document(const Json& fields) {
    Json whole{{"schema_version", 1}};
    whole.update(fields);
    return to_text(whole);
}

std::string document(Json fields, const std::vector<std::string>& warnings) {
    fields["warnings"] = warnings;
    return document(fields);
}

std::string Grid::print(Style style) const {
    std::vector<Table::Column> columns;
    for (const Head& head : heads) {
        const bool is_text = head.unit == Unit::text, is_number = head.key == "batch" || head.key == "cards";
        // The heading names the unit that its cells leave out.
        const char* const unit = head.unit == Unit::milliseconds ? " ms" : head.unit == Unit::seconds ? " s" : "";
        columns.push_back({head.title + unit, is_text || head.unit == Unit::bars ? Align::left : Align::right,
                           head.unit == Unit::bars,
                           (is_text || is_number) && (columns.empty() || columns.back().is_name)});
    }
    Table table(std::move(columns));
    for (const std::vector<Value>& row : rows) {
        std::vector<Cell> cells;
        for (std::size_t i = 0; i < row.size(); ++i)
            cells.push_back({text_of(row[i], heads[i].unit, false), row[i].tone});
        table.add(std::move(cells));
    }
    return table.print(style);
}

std::string Grid::csv() const {
    std::string text;
    std::vector<std::string> cells;
    for (const Head& head : heads) cells.push_back(head.key);
    append_csv_row(text, cells);
    for (const std::vector<Value>& row : rows) {
        cells.clear();
        for (const Value& value : row) cells.push_back(csv_text(value.exact));
        append_csv_row(text, cells);
    }
    return text;
}

Json Grid::json() const {
    Json list = Json::array();
    for (const std::vector<Value>& row : rows) {
        Json object = Json::object();
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (row[i].exact.is_discarded()) continue;
            Json* at = &object;
            std::istringstream path(heads[i].key);
            for (std::string name; std::getline(path, name, '.');) at = &(*at)[name];
            *at = row[i].exact;
        }
        list.push_back(std::move(object));
    }
    return list;
}

std::string Grid::page_table(std::string_view id) const {
    std::string html = fmt::format("<div class=\"wide\"><table id=\"{}\" class=\"sortable\"><thead><tr>", id);
    for (const Head& head : heads) {
        const std::string_view look = head.unit == Unit::text   ? " class=\"text\""
                                      : head.unit == Unit::bars ? " class=\"bars\""
                                                                : "";
        const std::string key = head.key.empty() ? "" : fmt::format(" data-key=\"{}\"", escape_markup(head.key));
        html += fmt::format("<th{}{}><button>{}</button></th>", look, key, escape_markup(head.title));
    }
    html += "</tr></thead><tbody>";
    for (const std::vector<Value>& row : rows) {
        html += "\n<tr>";
        for (std::size_t i = 0; i < row.size(); ++i) html += page_cell(row[i], heads[i].unit);
    }
    return html + "\n</tbody></table></div>\n";
}

void Grid::drop_if_empty(std::size_t column) {
    const auto at = static_cast<std::ptrdiff_t>(column);
    if (std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return !is_absent(row[column]); })) return;
    heads.erase(heads.begin() + at);
    for (std::vector<Value>& row : rows) row.erase(row.begin() + at);
}

std::vector<Selected> parse_selection(std::string_view keys) {
    std::vector<Selected> list;
    for (std::string_view word : words_of(keys)) {
        const bool is_optional = word.starts_with('?');
        word.remove_prefix(is_optional ? 1 : 0);
        const auto [name, key] = split_at(word, '=');
        list.push_back({std::string(name), std::string(name == word ? word : key), is_optional});
    }
    return list;
}

}  // namespace ftax::report
