#include "src/report/page.hpp"

#include <fmt/format.h>

#include <array>

#include "src/report/chart.hpp"
#include "src/report/markup.hpp"

namespace ftax::report {
namespace {

constexpr std::string_view page_style =
    R"(:root{color-scheme:light dark;--ink:#1c2430;--quiet:#4a5462;--rule:#e3e7ec;--ground:#fff;--host:#c9702b;--device:#2f6fd0}
@media (prefers-color-scheme:dark){:root{--ink:#e8ecf1;--quiet:#b4bdc9;--rule:#333c48;--ground:#151a21;--host:#e69f00;--device:#56a0f0}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:72rem;margin:0 auto;padding:1rem 1rem 4rem}
h1{font-size:1.4rem;line-height:1.25;margin:.5rem 0}h2{font-size:1.1rem;margin:2.2rem 0 .6rem}h1,p,li,figcaption{overflow-wrap:anywhere}
p,ul,figcaption{max-width:46rem}.facts,figcaption{color:var(--quiet)}figcaption{font-size:.9rem}
figure{margin:1rem 0;max-width:46rem}.plot{display:block;width:100%;height:auto}.ftax-chart.plot text{paint-order:stroke;stroke:var(--ground);stroke-width:4px;stroke-linejoin:round}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:0 0 .4rem;padding:0;font-size:.9rem}.legend svg{vertical-align:middle}
.wide{overflow-x:auto}.wide+.wide{margin-top:1rem}table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap;vertical-align:top}
th{color:var(--quiet);font-weight:600}.text,th.bars{text-align:left}td.long{white-space:normal;overflow-wrap:anywhere;min-width:20rem}
th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid}th[aria-sort] button::after{content:" ▲"}th[aria-sort=descending] button::after{content:" ▼"}
td.bars{min-width:12rem;vertical-align:middle}.bar{display:block;height:.6rem;min-width:1px;background:var(--device);print-color-adjust:exact;-webkit-print-color-adjust:exact}.bar.host{background:var(--host)}
@media (max-width:40rem){body{padding:.6rem .8rem 3rem}.ftax-chart.plot{font-size:20px}th,td{padding:.25rem .45rem}td.long{min-width:12rem}td.bars{min-width:6rem}
td:first-child,th:first-child{position:sticky;left:0;background:var(--ground)}td.words:first-child{white-space:normal;overflow-wrap:break-word;min-width:7rem;max-width:9rem}}
@media print{:root{color-scheme:light;--ink:#000;--quiet:#444;--rule:#ccc;--ground:#fff;--host:#c9702b;--device:#2f6fd0}
body{max-width:none;padding:0;font-size:10pt}.wide{overflow:visible}table{font-size:7.5pt}th,td{padding:.1rem .2rem}th,td.text{white-space:normal;overflow-wrap:break-word}td.long{min-width:0;overflow-wrap:anywhere}td.bars{min-width:3rem}
h1,h2{break-after:avoid}tr,figure{break-inside:avoid}figure{max-width:16cm}}
)";

/// Sorts by the exact values in data-v: numbers as numbers, the rest as text; a second click turns the order round.
constexpr std::string_view sort_script = R"(<script>
for (const table of document.querySelectorAll('table.sortable')) table.querySelectorAll('th button').forEach((button, column) =>
  button.addEventListener('click', () => {
    const head = button.parentElement, down = head.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
    for (const other of head.parentElement.children) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', down === 1 ? 'ascending' : 'descending');
    const value = row => row.children[column].dataset.v ?? row.children[column].textContent;
    const body = table.tBodies[0];
    [...body.rows].sort((a, b) => down * (head.classList.contains('text') ? value(a).localeCompare(value(b)) : value(a) - value(b)))
      .forEach(row => body.append(row));
  }));
</script>
)";

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

std::string page(std::string_view title, std::string_view markup) {
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width\"><title>{0}</title>\n<style>\n{1}{2}</style>\n</head><body><h1>{0}</h1>\n{3}{4}"
        "</body></html>\n",
        escape_markup(title), page_style, chart_style(), markup, sort_script);
}

}  // namespace ftax::report
