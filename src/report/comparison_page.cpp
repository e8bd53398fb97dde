#include "src/report/comparison_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "src/report/chart.hpp"
#include "src/report/markup.hpp"
#include "src/report/page.hpp"

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
    std::vector<ComparisonRow> rows;
    std::copy_if(report.rows.begin(), report.rows.end(), std::back_inserter(rows),
                 [](const ComparisonRow& row) { return row.prediction.has_value(); });
    // The pairs of one batch stand together: that is what is compared.
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.batch < b.batch; });
    return comparison_columns(report)
        .select(rows,
                "device framework batch latency_s low_s high_s bound ratio_to_best host_s device_s =bars host_share "
                "framework_overhead coverage_time total_bytes fits")
        .page_table("comparison");
}

/// What each pair rests on, once.
std::string profiles_section(const ComparisonReport& report) {
    std::vector<ComparisonRow> rows;
    std::set<std::pair<std::string_view, std::string_view>> seen;
    for (const ComparisonRow& row : report.rows) {
        if (row.prediction && seen.emplace(row.device, row.framework).second) rows.push_back(row);
    }
    return section("What it rests on", comparison_columns(report)
                                           .select(rows, "device device_profile framework framework_version host")
                                           .page_table("profiles"));
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
