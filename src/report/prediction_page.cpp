#include "src/report/prediction_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "src/report/breakdown.hpp"
#include "src/report/chart.hpp"
#include "src/report/latency_chart.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

constexpr std::string_view page_style = R"(<style>
:root{color-scheme:light dark;--ink:#1c2430;--quiet:#5b6675;--rule:#e3e7ec;--ground:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e8ecf1;--quiet:#a3adba;--rule:#333c48;--ground:#151a21}}
@media print{:root{--ink:#000;--quiet:#444;--rule:#ccc;--ground:#fff}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:72rem;margin:0 auto;padding:1rem}
h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin-top:2rem}.wide{overflow-x:auto}p,li{overflow-wrap:anywhere}
table{border-collapse:collapse;font-size:.9rem}th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th{color:var(--quiet);font-weight:600}td.text,th.text{text-align:left}.bar{display:block;height:.7em;min-width:1px;background:#2f6fd0}.bar.host{background:#c9702b}td{font-variant-numeric:tabular-nums}th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid}
</style>
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
    [...body.rows].sort((a, b) => down * (button.dataset.number ? value(a) - value(b) : value(a).localeCompare(value(b))))
      .forEach(row => body.append(row));
  }));
</script>
)";

std::string text_cell(std::string_view text) {
    return fmt::format("<td class=\"text\">{}</td>", escape_markup(text));
}

/// Shows a rounded quantity and keeps the exact one, in SI units, for sorting and for programs.
std::string number_cell(double value, std::string_view shown) {
    return fmt::format("<td data-v=\"{}\">{}</td>", value, escape_markup(shown));
}

/// The sentences that the terminal shows, each a line of its own.
std::string crossover_markup(const CrossoverReport& crossover) {
    std::string html;
    for (std::string text = print_crossover(crossover, {}); !text.empty();) {
        const auto end = text.find('\n');
        html += escape_markup(text.substr(0, end)) + "<br>";
        text.erase(0, end == std::string::npos ? end : end + 1);
    }
    return html;
}

std::string predictions_section(const PredictionReport& report) {
    const bool measured = std::any_of(report.rows.begin(), report.rows.end(),
                                      [](const PredictionRow& row) { return row.measured.has_value(); });
    std::string html =
        "<h2>Predictions</h2><div class=\"wide\"><table id=\"predictions\"><thead><tr><th>batch</th>"
        "<th>latency</th><th>90 % from</th><th>to</th><th>host</th><th>device</th><th class=\"text\">bound"
        "</th><th>modelled</th>" +
        std::string(measured ? "<th>measured</th>" : "") + "</tr></thead><tbody>\n";
    for (const PredictionRow& row : report.rows) {
        const Prediction& p = row.prediction;
        html += "<tr><td>" + (row.batch ? std::to_string(*row.batch) : std::string("fixed")) + "</td>";
        for (const double seconds : {p.latency_s, p.low_s, p.high_s, p.host_s, p.device_s}) {
            html += number_cell(seconds, duration(seconds));
        }
        html += text_cell(name_of(p.bound)) + number_cell(p.coverage.time, percent(p.coverage.time));
        if (row.measured) {
            html += number_cell(row.measured->latency_s, duration(row.measured->latency_s));
        } else if (measured) {
            html += "<td></td>";
        }
        html += "</tr>\n";
    }
    return html + "</tbody></table></div>\n";
}

/// Host and device time by group, each with a bar as long as its share of the larger of the two sums.
std::string breakdown_section(std::string_view title, std::string_view id, const std::vector<Share>& shares) {
    double host_s = 0, device_s = 0;
    for (const Share& share : shares) {
        host_s += share.host_s;
        device_s += share.device_s;
    }
    const double whole_s = std::max(host_s, device_s);
    const auto bar = [&](std::string_view of, double seconds) {
        return fmt::format("<span class=\"bar {}\" style=\"width:{:.2f}rem\"></span>", of, 14 * seconds / whole_s);
    };
    std::string html = fmt::format(
        "<h2>By {}</h2><div class=\"wide\"><table id=\"{}\" class=\"sortable\"><thead><tr><th class=\"text\"><button>{}"
        "</button></th>",
        title, id, title);
    for (const std::string_view column : {"launches", "kernels", "host", "device"}) {
        html += fmt::format("<th><button data-number=\"1\">{}</button></th>", column);
    }
    html += "<th class=\"text\">host above device</th></tr></thead><tbody>\n";
    for (const Share& share : shares) {
        html += "<tr>" + text_cell(share.name) + number_cell(share.launches, std::to_string(share.launches)) +
                number_cell(share.kernels, std::to_string(share.kernels)) +
                number_cell(share.host_s, duration(share.host_s)) +
                number_cell(share.device_s, duration(share.device_s)) + "<td class=\"text\">" +
                bar("host", share.host_s) + bar("device", share.device_s) + "</td></tr>\n";
    }
    return html + "</tbody></table></div>\n";
}

std::string launches_section(const PredictionReport& report, const Predictor& predictor) {
    const PredictionRow& row = report.rows.back();
    std::string html =
        fmt::format("<h2>Launches{}</h2><div class=\"wide\"><table id=\"launches\" class=\"sortable\"><thead><tr>",
                    row.batch ? fmt::format(" at batch {}", *row.batch) : "");
    for (const std::string_view title : {"operator", "source", "module", "host cost"}) {
        html += fmt::format("<th class=\"text\"><button>{}</button></th>", title);
    }
    for (const std::string_view title : {"kernels", "host", "device"}) {
        html += fmt::format("<th><button data-number=\"1\">{}</button></th>", title);
    }
    html += "<th class=\"text\"><button>bound</button></th></tr></thead><tbody>\n";
    for (const OpPrediction& launch : predictor.operators()) {
        const bool forward = launch.op == no_op;
        const Op* op = forward ? nullptr : &predictor.graph().ops[launch.op];
        html += "<tr>" + text_cell(op ? std::string_view(op->name) : name_of(launch.host_kind)) +
                text_cell(op ? op->source : "") + text_cell(op ? op->module : "") +
                text_cell(name_of(launch.host_kind)) + number_cell(launch.kernels, std::to_string(launch.kernels)) +
                number_cell(launch.host_s, duration(launch.host_s)) +
                number_cell(launch.device_s, duration(launch.device_s)) + text_cell(name_of(launch.bound)) + "</tr>\n";
    }
    return html + "</tbody></table></div>\n";
}

std::string provenance_section(const PredictionReport& report) {
    std::set<std::string> warnings(report.device.warnings.begin(), report.device.warnings.end());
    warnings.insert(report.framework.warnings.begin(), report.framework.warnings.end());
    for (const PredictionRow& row : report.rows) {
        warnings.insert(row.prediction.warnings.begin(), row.prediction.warnings.end());
    }
    std::string html = "<h2>What it rests on</h2>\n";
    if (!warnings.empty()) html += "<ul>\n";
    for (const std::string& warning : warnings) html += fmt::format("<li>Warning: {}</li>\n", escape_markup(warning));
    if (!warnings.empty()) html += "</ul>\n";
    html +=
        "<div class=\"wide\"><table><thead><tr><th class=\"text\">profile</th><th class=\"text\">parameter</th>"
        "<th>value</th><th class=\"text\">source</th></tr></thead><tbody>\n";
    const auto add = [&](const std::string& profile, const std::vector<Parameter>& parameters) {
        for (const Parameter& parameter : parameters) {
            html += "<tr>" + text_cell(profile) + text_cell(parameter.name) +
                    number_cell(parameter.value, fmt::format("{:.4g}", parameter.value)) + text_cell(parameter.source) +
                    "</tr>\n";
        }
    };
    add(fmt::format("{} {}", report.device.device.slug, report.device.version), report.device.parameters);
    add(fmt::format("{} {}, {}", report.framework.framework, report.framework.version, report.framework.host),
        report.framework.parameters);
    return html + "</tbody></table></div>\n";
}

}  // namespace

std::string prediction_page(const PredictionReport& report, const Predictor& predictor) {
    const Chart chart = latency_chart(report);
    const std::string title = escape_markup(chart.title);
    std::string html = fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width\"><title>{0}</title>\n{1}</head><body><h1>{0}</h1>\n",
        title, page_style);
    html += to_svg(chart);
    if (report.crossover) html += fmt::format("<p>{}</p>\n", crossover_markup(*report.crossover));
    html += predictions_section(report) + breakdown_section("operator kind", "kinds", breakdown(predictor, kind_of)) +
            breakdown_section("module", "modules", breakdown(predictor, stage_of)) +
            launches_section(report, predictor) + provenance_section(report);
    return html + std::string(sort_script) + "</body></html>\n";
}

}  // namespace ftax::report
