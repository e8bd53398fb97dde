#include "src/report/page.hpp"

#include <fmt/format.h>

#include <array>

#include "src/core/embedded.hpp"
#include "src/report/chart.hpp"
#include "src/report/markup.hpp"

namespace ftax::report {
namespace {

constexpr std::string_view page_style = "src/report/assets/page.css";
/// Sorts by the exact values in data-v: numbers as numbers, the rest as text; a second click turns the order round.
/// Filters long tables, and lets the other lines of a chart fade behind the one that a pointer is on.
constexpr std::string_view page_script = "src/report/assets/page.js";

}  // namespace

PageTable::PageTable(std::string_view id, const std::vector<PageColumn>& columns) {
    html_ = fmt::format("<div class=\"wide\"><table id=\"{}\" class=\"sortable\"><thead><tr>", id);
    static constexpr std::array<std::string_view, 3> classes{"", " class=\"text\"", " class=\"bars\""};
    for (const PageColumn& column : columns) {
        html_ += fmt::format("<th{}{}><button>{}</button></th>", classes[static_cast<std::size_t>(column.kind)],
                             column.key.empty() ? "" : fmt::format(" data-key=\"{}\"", escape_markup(column.key)),
                             escape_markup(column.title));
    }
    html_ += "</tr></thead><tbody>";
}

void PageTable::row() {
    html_ += "\n<tr>";
}

void PageTable::text(std::string_view shown) {
    constexpr std::size_t longest_word = 16, longest_line = 40;  // on a phone, and anywhere
    html_ += fmt::format("<td class=\"text{}{}\">{}</td>", shown.size() > longest_word ? " words" : "",
                         shown.size() > longest_line ? " long" : "", escape_markup(shown));
}

void PageTable::number(double value, std::string_view shown) {
    html_ += fmt::format("<td data-v=\"{}\">{}</td>", value, escape_markup(shown));
}

void PageTable::empty() {
    html_ += "<td></td>";
}

void PageTable::batch(std::optional<std::int64_t> batch) {
    if (!batch) return text("fixed");
    number(static_cast<double>(*batch), std::to_string(*batch));
}

void PageTable::bars(const std::vector<std::pair<std::string_view, double>>& look_and_share) {
    html_ += fmt::format("<td class=\"bars\" data-v=\"{}\">", look_and_share.front().second);
    for (const auto& [look, share] : look_and_share) {
        html_ += fmt::format("<span class=\"bar {}\" style=\"width:{:.2f}%\"></span>", look, 100 * share);
    }
    html_ += "</td>";
}

std::string PageTable::html() const {
    return html_ + "\n</tbody></table></div>\n";
}

std::string warning_list(const std::vector<std::string>& warnings) {
    if (warnings.empty()) return "";
    std::string html = "<ul class=\"warnings\">\n";
    for (const std::string& warning : warnings) html += fmt::format("<li>Warning: {}</li>\n", escape_markup(warning));
    return html + "</ul>\n";
}

std::string section(std::string_view title, std::string_view markup) {
    return fmt::format("<section><h2>{}</h2>\n{}</section>\n", escape_markup(title), markup);
}

std::string folded(std::string_view title, std::string_view markup) {
    return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape_markup(title), markup);
}

std::string page(std::string_view title, std::string_view markup, std::string_view script) {
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width\"><title>{0}</title>\n<style>\n{1}{2}</style>\n</head><body><h1>{0}</h1>\n{3}"
        "<script>\n{4}{5}</script>\n</body></html>\n",
        escape_markup(title), embedded_text(page_style), chart_style(), markup, embedded_text(page_script), script);
}

}  // namespace ftax::report
