#include "src/report/pages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "graphs/base/embedded.hpp"
#include "src/report/charts.hpp"
#include "src/report/columns.hpp"
#include "src/report/page.hpp"

namespace ftax::report {
namespace {

constexpr std::string_view explorer_script = "src/report/assets/explorer.js";

/// Microseconds in whole numbers: a page over ten cards has ten thousand of them.
Json microseconds(const std::vector<PredictionRow>& rows, double Prediction::*seconds) {
    return mapped(rows, [&](const PredictionRow& row) { return std::llround(row.prediction.*seconds * 1e6); });
}

Json curve_json(const ExplorerCurve& curve) {
    return {{"latency", microseconds(curve.rows, &Prediction::latency_s)},
            {"low", microseconds(curve.rows, &Prediction::low_s)},
            {"high", microseconds(curve.rows, &Prediction::high_s)},
            {"host", microseconds(curve.rows, &Prediction::host_s)},
            {"device", microseconds(curve.rows, &Prediction::device_s)},
            {"bound", mapped(curve.rows, [](const PredictionRow& row) { return name_of(row.prediction.bound); })},
            {"memory", mapped(curve.rows,
                              [](const PredictionRow& row) {
                                  const auto megabytes = static_cast<std::int64_t>(row.memory->total_bytes() / 1e6);
                                  return Json{megabytes, row.memory->fits()};
                              })},
            {"crossovers", mapped(curve.crossovers, [](const Crossover& crossover) {
                 return Json{{"batch", crossover.batch}, {"above", crossover.gpu_waits_above}};
             })}};
}

std::string slider(std::string_view id, std::string_view label, std::size_t count) {
    return fmt::format(
        "<label for=\"{0}\">{1}</label><input type=\"range\" id=\"{0}\" min=\"0\" max=\"{2}\" value=\"0\"{3}>"
        "<output id=\"{0}-value\" for=\"{0}\"></output>\n",
        id, escape_markup(label), count - 1, count < 2 ? " disabled" : "");
}

/// Errors of groups of rows, each named by one cell per column.
std::string errors_table(std::string_view id, const std::vector<std::string>& by,
                         const std::vector<ValidationGroup>& groups) {
    double worst = 0;
    for (const ValidationGroup& group : groups) worst = std::max({worst, group.errors.mean, group.errors.p90});
    Columns<ValidationGroup> columns = group_columns(by, groups);
    columns.add({"", "MAPE above P90", Unit::bars, [&](const ValidationGroup& group) {
                     return Json{{"mape", worst > 0 ? group.errors.mean / worst : 0},
                                 {"p90 host", worst > 0 ? group.errors.p90 / worst : 0}};
                 }});
    return columns.select(groups).page_table(id);
}

std::string furthest_section(const CsvTable& table, std::span<const ValidatedRow> rows) {
    constexpr std::size_t shown = 25;
    const auto error = [&](std::size_t i) { return rows[i].prediction->latency_s / rows[i].measured_s - 1; };
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].prediction) order.push_back(i);
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return std::abs(std::log1p(error(i))); });
    order.resize(std::min(shown, order.size()));
    const auto seconds = [&](double RowPrediction::*member) {
        return [&, member](std::size_t i) { return (*rows[i].prediction).*member; };
    };
    const Columns<std::size_t> columns{
        {"", "line", Unit::plain, [&](std::size_t i) { return table.line(i); }},
        {"", "measured row", Unit::text, [&](std::size_t i) { return identity_of(table, i); }},
        {"", "measured", Unit::duration, [&](std::size_t i) { return rows[i].measured_s; }},
        {"", "predicted", Unit::duration, seconds(&RowPrediction::latency_s)},
        {"", "90 % from", Unit::duration, seconds(&RowPrediction::low_s)},
        {"", "to", Unit::duration, seconds(&RowPrediction::high_s)},
        {"", "error", Unit::plain,
         [&](std::size_t i) { return Value(error(i), fmt::format("{:+.1f} %", 100 * error(i))); }},
        {"", "bound", Unit::text, [&](std::size_t i) { return rows[i].prediction->bound; }}};
    return section("Rows furthest off", columns.select(order).page_table("furthest"));
}

std::string skipped_section(const ValidationReport& report) {
    if (report.skipped.empty()) return "";
    const Columns<SkippedRows> columns{
        {"", "rows", Unit::plain, [](const SkippedRows& skipped) { return skipped.lines.size(); }},
        {"", "first line", Unit::plain, [](const SkippedRows& skipped) { return skipped.lines.front(); }},
        {"", "reason", Unit::text, &SkippedRows::reason}};
    const auto shown = std::span(report.skipped).first(std::min<std::size_t>(100, report.skipped.size()));
    return section(fmt::format("Rows without a prediction: {} of {} reasons", shown.size(), report.skipped.size()),
                   columns.select(shown).page_table("skipped"));
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

std::string explorer_page(const ExplorerReport& report) {
    const Json data{{"batches", report.batches},
                    {"dimension", report.dimension},
                    {"values", report.values},
                    {"cards", mapped(report.cards, [](const ExplorerCard& card) {
                         return Json{{"name", card.name}, {"curves", mapped(card.curves, curve_json)}};
                     })}};
    std::string title = fmt::format("{}, {}, {}", report.model, report.framework, name_of(report.precision));
    for (const auto& [symbol, value] : report.dims) title += fmt::format(", {} {}", symbol, value);
    std::string sliders = slider("batch", "batch", report.batches.size());
    if (!report.dimension.empty()) sliders += slider("dimension", report.dimension, report.values.size());
    std::string choices;
    for (const ExplorerCard& card : report.cards)
        choices += fmt::format("<label><input type=\"radio\" name=\"card\"> {} <output></output></label>\n",
                               escape_markup(card.name));
    const Chart legend{.series = {{.label = "latency, 90 % interval", .points = {}},
                                  {.label = "host", .look = SeriesLook::host, .points = {}},
                                  {.label = "device", .look = SeriesLook::device, .points = {}}}};
    const std::string markup =
        fmt::format(fmt::runtime(embedded_text("src/report/assets/explorer.html")), escape_markup(report.host), sliders,
                    choices, legend_of(legend), warning_list(report.warnings));
    return page(title, markup,
                fmt::format("const data = {};\n{}", script_text(data.dump()), embedded_text(explorer_script)));
}

std::string validation_page(const ValidationSource& source, const CsvTable& table, std::span<const ValidatedRow> rows,
                            const ValidationReport& report) {
    std::string html = verdict_line(verdict_of(report)) + facts(source, report);
    const std::string warnings = warning_list(report.warnings);
    if (report.overall) {
        html += section("Predicted against measured", to_figure(validation_chart(table, rows), "")) +
                section("All rows", errors_table("overall", {}, {{{}, *report.overall}}) + warnings);
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
        html += warnings;
    }
    html += skipped_section(report);
    if (!report.profiles.empty())
        html += section("What it rests on", profile_columns().select(report.profiles).page_table("profiles"));
    return page(fmt::format("{}: predicted against measured", std::filesystem::path(source.rows).filename().string()),
                html);
}

}  // namespace ftax::report
