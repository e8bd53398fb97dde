#include "src/report/validation_page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <vector>

#include "src/io/number.hpp"
#include "src/report/markup.hpp"
#include "src/report/page.hpp"
#include "src/report/units.hpp"
#include "src/report/validation_chart.hpp"

namespace ftax::report {
namespace {

/// Errors of groups of rows, each named by one cell per column.
std::string errors_table(std::string_view id, const std::vector<std::string>& by,
                         const std::vector<ValidationGroup>& groups) {
    std::vector<PageColumn> columns;
    for (const std::string& column : by)
        columns.push_back({column, column, column == "batch" ? CellKind::number : CellKind::text});
    columns.insert(columns.end(), {{"rows", "rows"},
                                   {"median", "median_ape"},
                                   {"MAPE", "mape"},
                                   {"P90", "p90_ape"},
                                   {"bias", "bias"},
                                   {"inside 90 %", "inside_interval"},
                                   {"MAPE above P90", "", CellKind::bars}});
    double worst = 0;
    for (const ValidationGroup& group : groups) worst = std::max({worst, group.errors.mean, group.errors.p90});
    PageTable table(id, columns);
    for (const ValidationGroup& group : groups) {
        const ErrorStatistics& errors = group.errors;
        table.row();
        for (const std::string& value : group.values) {
            if (const auto number = parse_number(value)) {
                table.number(*number, value);
            } else {
                table.text(value);
            }
        }
        table.number(static_cast<double>(errors.rows), std::to_string(errors.rows));
        for (const double error : {errors.median, errors.mean, errors.p90})
            table.number(error, fmt::format("{:.1f} %", 100 * error));
        table.number(errors.bias, fmt::format("{:+.1f} %", 100 * errors.bias));
        table.number(errors.inside, fmt::format("{:.1f} %", 100 * errors.inside));
        table.bars({{"mape", worst > 0 ? errors.mean / worst : 0}, {"p90 host", worst > 0 ? errors.p90 / worst : 0}});
    }
    return table.html();
}

std::string furthest_section(const CsvTable& table, std::span<const ValidatedRow> rows) {
    constexpr std::size_t shown = 25;
    const auto error = [&](std::size_t i) { return rows[i].prediction->latency_s / rows[i].measured_s - 1; };
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].prediction) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::abs(std::log1p(error(a))) > std::abs(std::log1p(error(b)));
    });
    order.resize(std::min(shown, order.size()));
    PageTable furthest("furthest", {{"line"},
                                    {"measured row", "", CellKind::text},
                                    {"measured"},
                                    {"predicted"},
                                    {"90 % from"},
                                    {"to"},
                                    {"error"},
                                    {"bound", "", CellKind::text}});
    for (const std::size_t i : order) {
        const RowPrediction& p = *rows[i].prediction;
        furthest.row();
        furthest.number(static_cast<double>(table.line(i)), std::to_string(table.line(i)));
        furthest.text(identity_of(table, i));
        for (const double seconds : {rows[i].measured_s, p.latency_s, p.low_s, p.high_s})
            furthest.number(seconds, duration(seconds));
        furthest.number(error(i), fmt::format("{:+.1f} %", 100 * error(i)));
        furthest.text(name_of(p.bound));
    }
    return section("Rows furthest off", furthest.html());
}

std::string skipped_section(const ValidationReport& report) {
    if (report.skipped.empty()) return "";
    PageTable table("skipped", {{"rows"}, {"first line"}, {"reason", "", CellKind::text}});
    for (const SkippedRows& skipped : report.skipped) {
        table.row();
        table.number(static_cast<double>(skipped.lines.size()), std::to_string(skipped.lines.size()));
        table.number(static_cast<double>(skipped.lines.front()), std::to_string(skipped.lines.front()));
        table.text(skipped.reason);
    }
    return section("Rows without a prediction", table.html());
}

std::string provenance_section(const ValidationReport& report) {
    if (report.profiles.empty()) return "";
    PageTable table("profiles", {{"profile of a", "kind", CellKind::text},
                                 {"name", "name", CellKind::text},
                                 {"version", "version", CellKind::text},
                                 {"host", "host", CellKind::text}});
    for (const UsedProfile& profile : report.profiles) {
        table.row();
        for (const std::string& cell : {profile.kind, profile.name, profile.version, profile.host}) table.text(cell);
    }
    return section("What it rests on", table.html());
}

std::string facts(const ValidationSource& source, const ValidationReport& report) {
    std::string text = fmt::format("{} of {} rows of {} are predicted", report.overall ? report.overall->rows : 0,
                                   report.rows, source.rows);
    text += source.anchor.empty() ? "; host costs are the built-in ones"
                                  : fmt::format("; host costs are anchored on {}", source.anchor);
    text += source.device_profile.empty() ? ", device parameters too."
                                          : fmt::format("; device parameters are those of {}.", source.device_profile);
    return fmt::format("<p class=\"facts\">{}</p>\n", escape_markup(text));
}

}  // namespace

std::string validation_page(const ValidationSource& source, const CsvTable& table, std::span<const ValidatedRow> rows,
                            const ValidationReport& report) {
    std::string html = facts(source, report) + warning_list(report.warnings);
    if (report.overall) {
        html += to_figure(validation_chart(table, rows), "") + errors_table("overall", {}, {{{}, *report.overall}});
        if (!report.groups.empty())
            html += section(fmt::format("By {}", fmt::join(report.by, ", ")),
                            errors_table("groups", report.by, report.groups));
        for (const std::string column : {"gpu", "framework", "precision", "batch", "op", "model"}) {
            if (!table.column(column) || report.by == std::vector{column}) continue;
            const auto groups = errors_by(*column_values(table, column), rows);
            if (groups.size() > 1) html += section("By " + column, errors_table("by-" + column, {column}, groups));
        }
        html += furthest_section(table, rows);
    } else {
        html += "<p>No row could be predicted.</p>\n";
    }
    html += skipped_section(report) + provenance_section(report);
    return page(fmt::format("{}: predicted against measured", std::filesystem::path(source.rows).filename().string()),
                html);
}

}  // namespace ftax::report
