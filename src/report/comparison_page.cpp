#include "src/report/comparison_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "ftax/equations.hpp"
#include "src/report/chart.hpp"
#include "src/report/markup.hpp"
#include "src/report/page.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

std::string title_of(const ComparisonReport& report) {
    std::string title = fmt::format("{} compared, {}", report.model, name_of(report.precision));
    for (const auto& [symbol, value] : report.dims) title += fmt::format(", {} {}", symbol, value);
    return title;
}

/// Where a name stands among those seen so far, at most at the last category; a new one is added.
std::size_t index_of(std::string_view name, std::vector<std::string_view>& seen) {
    const auto found = std::find(seen.begin(), seen.end(), name);
    const auto index = static_cast<std::size_t>(found - seen.begin());
    if (found == seen.end()) seen.push_back(name);
    return std::min(index, category_count - 1);
}

/// One line per pair: devices differ in colour and dot, frameworks in dash. What there is one of leaves colour and dash
/// to the other; those beyond the last share it.
Chart chart_of(const ComparisonReport& report) {
    Chart chart{.title = title_of(report), .y_label = "latency, ms"};
    std::vector<double> batches;
    std::vector<std::string_view> devices, frameworks;
    for (const ComparisonRow& row : report.rows) {
        if (!row.prediction) continue;
        static_cast<void>(index_of(row.device, devices));
        static_cast<void>(index_of(row.framework, frameworks));
    }
    for (const ComparisonRow& row : report.rows) {
        if (!row.prediction) continue;
        if (row.batch) batches.push_back(static_cast<double>(*row.batch));
        const std::string label = fmt::format("{} on {}", row.framework, row.device);
        if (chart.series.empty() || chart.series.back().label != label) {
            const std::size_t device = index_of(row.device, devices), framework = index_of(row.framework, frameworks);
            chart.series.push_back({.label = label,
                                    .look = SeriesLook::line,
                                    .points = {},
                                    .category = devices.size() > 1 ? device : framework,
                                    .dash = frameworks.size() > 1 ? framework : device});
        }
        chart.series.back().points.push_back(
            {static_cast<double>(row.batch.value_or(1)), row.prediction->latency_s * 1e3});
    }
    for (Series& series : chart.series) {
        std::stable_sort(series.points.begin(), series.points.end(),
                         [](const auto& a, const auto& b) { return a.x < b.x; });
    }
    label_batches(chart, std::move(batches));
    return chart;
}

std::string pairs_table(const ComparisonReport& report) {
    std::vector<const ComparisonRow*> rows;
    std::map<std::optional<std::int64_t>, double> longest_s;
    for (const ComparisonRow& row : report.rows) {
        if (!row.prediction) continue;
        rows.push_back(&row);
        double& longest = longest_s[row.batch];
        longest = std::max({longest, row.prediction->host_s, row.prediction->device_s});
    }
    // The pairs of one batch stand together: that is what is compared.
    std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->batch < b->batch; });
    PageTable table("comparison", {{"device", "device", CellKind::text},
                                   {"framework", "framework", CellKind::text},
                                   {"batch", "batch"},
                                   {"latency", "latency_s"},
                                   {"90 % from", "low_s"},
                                   {"to", "high_s"},
                                   {"bound", "bound", CellKind::text},
                                   {"to best", "ratio_to_best"},
                                   {"host", "host_s"},
                                   {"device", "device_s"},
                                   {"host above device", "", CellKind::bars},
                                   {"host share", "host_share"},
                                   {"overhead", "framework_overhead"},
                                   {"modelled", "coverage_time"},
                                   {"memory", "total_bytes"},
                                   {"fits", "fits", CellKind::text}});
    for (const ComparisonRow* at : rows) {
        const ComparisonRow& row = *at;
        const Prediction& p = *row.prediction;
        table.row();
        table.text(row.device);
        table.text(row.framework);
        table.batch(row.batch);
        for (const double seconds : {p.latency_s, p.low_s, p.high_s}) table.number(seconds, duration(seconds));
        table.text(name_of(p.bound));
        table.number(row.ratio_to_best, row.ratio_to_best == 1 ? "best" : significant(row.ratio_to_best) + "x");
        for (const double seconds : {p.host_s, p.device_s}) table.number(seconds, duration(seconds));
        table.bars({{"host", p.host_s / longest_s.at(row.batch)}, {"device", p.device_s / longest_s.at(row.batch)}});
        for (const double share :
             {host_share(p), equations::framework_overhead(p.latency_s, p.device_s), p.coverage.time}) {
            table.number(share, percent(share));
        }
        if (row.memory) {
            table.number(row.memory->total_bytes(), byte_size(row.memory->total_bytes()));
            table.text(row.memory->fits() ? "yes" : "no");
        } else {
            table.empty();
            table.empty();
        }
    }
    return table.html();
}

/// What each pair rests on, once.
std::string profiles_section(const ComparisonReport& report) {
    PageTable table("profiles", {{"device", "device", CellKind::text},
                                 {"profile", "device_profile", CellKind::text},
                                 {"framework", "framework", CellKind::text},
                                 {"version", "framework_version", CellKind::text},
                                 {"host", "host", CellKind::text}});
    std::set<std::pair<std::string_view, std::string_view>> seen;
    for (const ComparisonRow& row : report.rows) {
        if (!row.prediction || !seen.emplace(row.device, row.framework).second) continue;
        table.row();
        for (const std::string_view cell :
             {row.device, row.device_profile, row.framework, row.framework_version, row.host}) {
            table.text(cell);
        }
    }
    return section("What it rests on", table.html());
}

std::string skipped_list(const ComparisonReport& report) {
    std::string html;
    for (const ComparisonRow& row : report.rows) {
        if (row.prediction) continue;
        html += fmt::format("<li>{}</li>\n",
                            escape_markup(fmt::format("{} on {}: {}", row.framework, row.device, row.skipped)));
    }
    return html.empty() ? "" : section("Not compared", fmt::format("<ul id=\"skipped\">\n{}</ul>\n", html));
}

}  // namespace

std::string comparison_page(const ComparisonReport& report) {
    std::set<std::string> warnings(report.warnings.begin(), report.warnings.end());
    for (const ComparisonRow& row : report.rows) {
        if (row.prediction) warnings.insert(row.prediction->warnings.begin(), row.prediction->warnings.end());
    }
    for (std::string& line : rules_without_rows(report)) warnings.insert(std::move(line));
    const Chart chart = chart_of(report);
    const std::string predictions =
        pairs_table(report) +
        "<p class=\"facts\">To best: latency against the fastest pair at the same batch. Host share: of "
        "host and device time together. Overhead: share of the latency that the GPU waits. Modelled: share "
        "of the time that rests on a rule of its operator.</p>\n" +
        warning_list({warnings.begin(), warnings.end()});
    return page(chart.title, to_figure(chart, "") + section("Predictions", predictions) + skipped_list(report) +
                                 profiles_section(report));
}

}  // namespace ftax::report
