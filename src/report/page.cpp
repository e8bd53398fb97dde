#include "src/report/page.hpp"

#include <fmt/format.h>

#include "graphs/base/embedded.hpp"
#include "graphs/files/escape.hpp"
#include "src/report/chart.hpp"
#include "src/report/quantities.hpp"

namespace ftax::report {
namespace {

constexpr std::string_view page_frame = "src/report/assets/page.html";
constexpr std::string_view page_style = "src/report/assets/page.css";
/// Sorts by the exact values in data-v, filters long tables, fits wide ones, fades the lines beside the pointer's.
constexpr std::string_view page_script = "src/report/assets/page.js";

}  // namespace

std::string warning_list(const std::vector<std::string>& warnings) {
    if (warnings.empty()) return "";
    std::string html = "<ul class=\"warnings\">\n";
    for (const std::string& warning : merged(warnings))
        html += fmt::format("<li>Warning: {}</li>\n", escape_markup(warning));
    return html + "</ul>\n";
}

std::string verdict_line(std::string_view text) {
    return text.empty() ? "" : fmt::format("<p id=\"best\" class=\"verdict\">{}</p>\n", escape_markup(text));
}

std::string section(std::string_view title, std::string_view markup) {
    return fmt::format("<section><h2>{}</h2>\n{}</section>\n", escape_markup(title), markup);
}

std::string folded(std::string_view title, std::string_view markup) {
    return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escape_markup(title), markup);
}

std::string page(std::string_view title, std::string_view markup, std::string_view script) {
    return fmt::format(fmt::runtime(embedded_text(page_frame)), escape_markup(title), embedded_text(page_style),
                       chart_style(), markup, script, embedded_text(page_script));
}

std::string script_text(const std::string& json) {
    std::string text;
    for (const char& c : json) text += c == '<' ? "\\u003c" : std::string_view(&c, 1);
    return text;
}

std::string escape_markup(std::string_view text) {
    constexpr std::string_view special = "<>&\"'";
    static constexpr std::string_view escapes[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
    const std::string shown = escape_terminal(text);
    std::string result;
    for (const char& c : shown) {
        const std::size_t at = special.find(c);
        result += at == special.npos ? std::string_view(&c, 1) : escapes[at];
    }
    return result;
}

}  // namespace ftax::report
