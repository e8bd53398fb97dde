#include "src/report/pages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "src/core/embedded.hpp"
#include "src/report/breakdown.hpp"
#include "src/report/chart.hpp"
#include "src/report/charts.hpp"
#include "src/report/columns.hpp"
#include "src/report/launch_report.hpp"
#include "src/report/page.hpp"
#include "src/report/prediction_sections.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

std::string roofline_section(const DeviceSpec& device, const Graph& graph, const Explanation& explanation,
                             std::string_view of, std::string_view at) {
    constexpr std::size_t shown = 25;
    const std::vector<RooflineKernel> kernels = roofline_kernels(device, graph, explanation);
    if (kernels.empty()) return "";
    double device_s = 0;
    for (const RooflineKernel& kernel : kernels) device_s += kernel.launches * kernel.seconds;
    using Kernel = RooflineKernel;
    const Columns<Kernel> columns{
        {"", "kernel", Unit::text, &Kernel::name},
        {"", "operator", Unit::text, &Kernel::op},
        {"", "units", Unit::text, &Kernel::path},
        {"", "launches", Unit::plain, &Kernel::launches},
        {"", "each", Unit::duration, &Kernel::seconds},
        {"", "of device time", Unit::share, [&](const Kernel& k) { return k.launches * k.seconds / device_s; }},
        {"", "FLOP per byte", Unit::significant, &Kernel::intensity},
        {"", "FLOP/s", Unit::amount, &Kernel::flops_per_s},
        {"", "bytes/s", Unit::amount, [](const Kernel& k) { return k.bytes / k.seconds; }},
        {"", "of the roof", Unit::plain,
         [](const Kernel& k) {
             if (k.roof_flops_per_s <= 0) return Value();
             return Value(k.of_roof(), fmt::format("{:.0f} %", 100 * k.of_roof()));
         }},
        {"", "bound", Unit::text, &Kernel::bound}};
    const std::string caption = fmt::format(
        "Dots: kernels{}, as large as their share of the device time. Lines: what the datasheet allows, {} of memory "
        "and the peak of the units in use; a kernel above the slope finds its operands in the L2 cache. Each operand "
        "counts once, and so does one operation per element where nothing is multiplied.",
        at, quantity(device.memory_bandwidth_bytes_per_s, "B/s"));
    return section(
        "Roofline",
        to_figure(roofline_chart(kernels, device, fmt::format("Roofline of {}", of)), escape_markup(caption)) +
            (kernels.size() > shown ? fmt::format("<p>The {} of {} groups of equal kernels that take most time:</p>\n",
                                                  shown, kernels.size())
                                    : "") +
            columns.select(std::span(kernels).first(std::min(shown, kernels.size()))).page_table("kernels"));
}

std::string launches_section(const Graph& graph, const std::vector<OpPrediction>& launches, std::string_view at) {
    const Grid table = launch_columns(graph).select(
        launches, "=operator =source =module =host_kind =kernels =host_s =device_s =bound");
    return section(fmt::format("Launches{}", at),
                   folded(fmt::format("All {}, one by one", launches.size()), table.page_table("launches")));
}

std::string causes_section(const std::vector<Crossover>& crossovers) {
    struct Cause : HostCause {
        double batch = 0, share = 0;
    };
    std::vector<Cause> causes;
    for (const Crossover& crossover : crossovers) {
        for (const HostCause& cause : crossover.causes)
            causes.push_back({cause, crossover.batch, cause.host_s / crossover.host_s});
    }
    const Columns<Cause> columns{{"", "at batch", Unit::significant, &Cause::batch},
                                 {"kind", "kind", Unit::text, &Cause::kind},
                                 {"operations", "operations", Unit::plain, &Cause::operations},
                                 {"host_s", "host", Unit::duration, &Cause::host_s},
                                 {"", "of the host's time", Unit::share, &Cause::share},
                                 {"", "share", Unit::bars, [](const Cause& c) {
                                      return Json{{"host", c.share}};
                                  }}};
    return section("What costs the host most there", columns.select(causes).page_table("causes"));
}

std::string interval_table(const std::vector<Crossover>& crossovers) {
    const auto waits = [](const Crossover& crossover) { return crossover.gpu_waits_above ? "above" : "below"; };
    const Columns<Crossover> columns{{"batch", "crossover batch", Unit::significant, &Crossover::batch},
                                     {"low", "90 % from", Unit::significant, &Crossover::low},
                                     {"high", "to", Unit::significant, &Crossover::high},
                                     {"host_s", "host there", Unit::duration, &Crossover::host_s},
                                     {"gpu_waits", "the GPU waits", Unit::text, waits}};
    return columns.select(crossovers).page_table("interval");
}

/// Where a name stands among those seen so far, at most at the last category; a new one is added.
std::size_t index_of(const std::string& name, std::vector<std::string>& seen) {
    const auto found = std::find(seen.begin(), seen.end(), name);
    const auto index = static_cast<std::size_t>(found - seen.begin());
    if (found == seen.end()) seen.push_back(name);
    return std::min(index, category_count - 1);
}

/// One line per combination: devices differ in colour and dot, the rest in dash. What there is one of leaves colour and
/// dash to the other; those beyond the last share it.
Chart chart_of(const ComparisonReport& report) {
    Chart chart{.title = title_of(report), .y_label = "latency, ms"};
    std::vector<double> batches;
    Differences differences(choices_of(report.rows));
    differences.batch = false;
    Differences others = differences;
    others.device = false;
    const bool has_others = others.framework || others.precision || others.cards;
    std::vector<std::string> devices, rests;
    std::map<std::string, std::size_t> series_of;
    for (const ComparisonRow& row : report.rows) {
        if (!row.prediction) continue;
        if (row.batch) batches.push_back(static_cast<double>(*row.batch));
        const std::string label = differences.name(row);
        const std::size_t device = index_of(row.device, devices), rest = index_of(others.name(row), rests);
        const auto [found, is_new] = series_of.emplace(label, chart.series.size());
        if (is_new) {
            chart.series.push_back({.label = label,
                                    .look = SeriesLook::line,
                                    .points = {},
                                    .category = differences.device ? device : rest,
                                    .dash = has_others ? rest : device});
        }
        chart.series[found->second].points.push_back(
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
    return comparison_columns(report)
        .select(rows_that_run(report.rows),
                Differences(choices_of(report.rows)).keys(true) +
                    "batch latency_s low_s high_s items_per_s ?dollars_per_million "
                    "?keeps_level bound ratio_to_best host_s device_s =bars framework_overhead "
                    "=total_and_fits")
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

/// What could not run, with the reason.
std::string skipped_list(const std::vector<const Choice*>& choices) {
    std::string html;
    for (const std::string& line : reasons_of(choices)) html += fmt::format("<li>{}</li>\n", escape_markup(line));
    return html.empty() ? "" : section("Not compared", fmt::format("<ul id=\"skipped\">\n{}</ul>\n", html));
}

/// The answer in one line.
std::string verdict_line(const Ranking& ranking) {
    const std::string& text = ranking.verdict;
    return text.empty() ? "" : fmt::format("<p id=\"best\" class=\"verdict\">{}</p>\n", escape_markup(text));
}

Chart step_chart(const GenerationReport& report) {
    Chart chart{.title = fmt::format("{} on {}, {}, {}", report.run.model, report.run.device.device.name,
                                     report.run.framework.framework, name_of(report.run.precision)),
                .y_label = "milliseconds",
                .series = {}};
    std::vector<double> batches;
    const std::size_t model = shown(report).model;
    Series host{.label = "host, a step of decoding", .look = SeriesLook::host, .points = {}};
    Series device{.label = "device, a step of decoding", .look = SeriesLook::device, .points = {}};
    Series step{.label = "per token", .look = SeriesLook::prediction, .points = {}};
    Series first{.label = "first token", .look = SeriesLook::line, .points = {}, .category = 3};
    for (const GenerationRow& row : report.rows) {
        if (!row.runs() || row.model != model) continue;
        const auto batch = static_cast<double>(row.generation.request.batch);
        batches.push_back(batch);
        host.points.push_back({batch, row.generation.decode_host_s * 1e3});
        device.points.push_back({batch, row.generation.decode_device_s * 1e3});
        step.points.push_back({batch, row.generation.tpot_s * 1e3});
        first.points.push_back({batch, row.generation.ttft_s * 1e3});
    }
    chart.series = {std::move(host), std::move(device), std::move(step), std::move(first)};
    for (Series& series : chart.series) {
        std::stable_sort(series.points.begin(), series.points.end(),
                         [](const auto& a, const auto& b) { return a.x < b.x; });
    }
    mark_crossovers(chart, shown(report).crossover.batches, "decoding's crossover");
    label_batches(chart, std::move(batches));
    return chart;
}

std::string generations_section(const GenerationReport& report) {
    const Grid table = generation_columns(report).select(
        rows_that_run(report.rows),
        Differences(choices_of(report.rows)).keys(true) +
            "batch ttft_s tpot_s total_s low_s high_s tokens_per_s "
            "=prefill_bound =decode_bound =total_bytes fits ?dollars_per_million ?keeps_level");
    return section(fmt::format("Prompts of {} tokens, {} new ones", shown(report).generation.request.prompt,
                               shown(report).generation.request.new_tokens),
                   table.page_table("generations"));
}

std::vector<std::string> warnings_of(const GenerationReport& report) {
    std::set<std::string> warnings(report.run.warnings.begin(), report.run.warnings.end());
    for (const GenerationRow& row : report.rows)
        warnings.insert(row.generation.warnings.begin(), row.generation.warnings.end());
    return {warnings.begin(), warnings.end()};
}

using Json = nlohmann::ordered_json;

constexpr std::string_view explorer_script = "src/report/assets/explorer.js";

/// Microseconds in whole numbers: a page over ten cards has ten thousand of them.
Json microseconds(const std::vector<PredictionRow>& rows, double Prediction::*seconds) {
    auto json = Json::array();
    for (const PredictionRow& row : rows)
        json.push_back(static_cast<std::int64_t>(row.prediction.*seconds * 1e6 + 0.5));
    return json;
}

Json curve_json(const ExplorerCurve& curve) {
    auto bounds = Json::array();
    auto memory = Json::array();
    auto crossovers = Json::array();
    for (const Crossover& crossover : curve.crossovers)
        crossovers.push_back({{"batch", crossover.batch}, {"above", crossover.gpu_waits_above}});
    for (const PredictionRow& row : curve.rows) {
        bounds.push_back(name_of(row.prediction.bound));
        memory.push_back({static_cast<std::int64_t>(row.memory->total_bytes() / 1e6), row.memory->fits()});
    }
    return {{"latency", microseconds(curve.rows, &Prediction::latency_s)},
            {"low", microseconds(curve.rows, &Prediction::low_s)},
            {"high", microseconds(curve.rows, &Prediction::high_s)},
            {"host", microseconds(curve.rows, &Prediction::host_s)},
            {"device", microseconds(curve.rows, &Prediction::device_s)},
            {"bound", std::move(bounds)},
            {"memory", std::move(memory)},
            {"crossovers", std::move(crossovers)}};
}

/// As a script may hold it: nothing in it ends the script.
std::string script_text(const Json& json) {
    std::string text;
    for (const char c : json.dump()) {
        if (c == '<') {
            text += "\\u003c";
        } else {
            text += c;
        }
    }
    return text;
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
    Columns<ValidationGroup> columns = group_columns(by);
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
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].prediction) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::abs(std::log1p(error(a))) > std::abs(std::log1p(error(b)));
    });
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
    using Skipped = SkippedRows;
    const Columns<Skipped> columns{
        {"", "rows", Unit::plain, [](const Skipped& skipped) { return skipped.lines.size(); }},
        {"", "first line", Unit::plain, [](const Skipped& skipped) { return skipped.lines.front(); }},
        {"", "reason", Unit::text, &Skipped::reason}};
    return section("Rows without a prediction", columns.select(report.skipped).page_table("skipped"));
}

std::string provenance_section(const ValidationReport& report) {
    if (report.profiles.empty()) return "";
    return section("What it rests on", profile_columns().select(report.profiles).page_table("profiles"));
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

std::string prediction_page(const PredictionReport& report, const Graph& graph, const Explanation& last) {
    const Chart chart = latency_chart(report);
    const auto batch = report.rows.back().batch;
    const std::string at = batch ? fmt::format(" at batch {}", *batch) : "";
    std::string html = facts_line(report) + to_figure(chart, "") + rests_on_section(report, graph);
    if (report.crossover) html += crossover_paragraph(*report.crossover);
    if (report.anchors)
        html += fmt::format("<p id=\"anchors\">{}</p>\n", escape_markup(print_anchors(*report.anchors)));
    html += predictions_section(report) +
            (report.rows.back().memory ? memory_section(*report.rows.back().memory) : "") +
            roofline_section(report.device.device, graph, last, chart.title, at) +
            breakdown_section("operator kind", "kinds", breakdown(graph, last.launches, kind_of)) +
            breakdown_section("module", "modules", breakdown(graph, last.launches, stage_of)) +
            launches_section(graph, last.launches, at) + provenance_section(report);
    return page(chart.title, html);
}

std::string crossover_page(const PredictionReport& report, const PredictionReport& curve, const Graph& graph) {
    const Chart chart = latency_chart(curve);
    std::string html = facts_line(report) + to_figure(chart, "") + crossover_paragraph(*report.crossover);
    if (const auto& crossovers = report.crossover->crossovers; !crossovers.empty())
        html += interval_table(crossovers) + causes_section(crossovers);
    html += predictions_section(report) + rests_on_section(report, graph) + provenance_section(report);
    return page("Crossover of " + chart.title, html);
}

std::string comparison_page(const ComparisonReport& report) {
    std::set<std::string> warnings(report.warnings.begin(), report.warnings.end());
    for (const ComparisonRow& row : report.rows) {
        if (row.prediction) warnings.insert(row.prediction->warnings.begin(), row.prediction->warnings.end());
    }
    for (std::string& line : rules_without_rows(report)) warnings.insert(std::move(line));
    const Chart chart = chart_of(report);
    const std::string predictions = pairs_table(report) +
                                    "<p class=\"facts\">To best: latency against the fastest at the same batch. "
                                    "Overhead: share of the latency that the "
                                    "GPU waits.</p>\n" +
                                    warning_list({warnings.begin(), warnings.end()});
    const std::vector<const Choice*> choices = choices_of(report.rows);
    return page(chart.title, verdict_line(report.ranking) + to_figure(chart, "") + section("Predictions", predictions) +
                                 skipped_list(choices) + profiles_section(report));
}

std::string generation_page(const GenerationReport& report, const ExplainedPass& prefill, const ExplainedPass& decode) {
    const Chart chart = step_chart(report);
    const Generation& last = shown(report).generation;
    const auto kinds = [](const ExplainedPass& pass) {
        return breakdown(pass.graph, pass.explanation.launches, kind_of);
    };
    std::string html = verdict_line(report.ranking) + facts_line(report.run) + to_figure(chart, "") +
                       generations_section(report) + memory_section(last.memory) +
                       breakdown_section("operator kind, prompt", "prefill", kinds(prefill)) +
                       breakdown_section("operator kind, a step of decoding", "decode", kinds(decode)) +
                       section("Warnings", warning_list(warnings_of(report))) + skipped_list(choices_of(report.rows)) +
                       provenance_section(report.run);
    return page(chart.title, html);
}

std::string explorer_page(const ExplorerReport& report) {
    auto cards = Json::array();
    for (const ExplorerCard& card : report.cards) {
        auto curves = Json::array();
        for (const ExplorerCurve& curve : card.curves) curves.push_back(curve_json(curve));
        cards.push_back({{"name", card.name}, {"curves", std::move(curves)}});
    }
    const Json data{{"batches", report.batches},
                    {"dimension", report.dimension},
                    {"values", report.values},
                    {"cards", std::move(cards)}};
    std::string title = fmt::format("{}, {}, {}", report.model, report.framework, name_of(report.precision));
    for (const auto& [symbol, value] : report.dims) title += fmt::format(", {} {}", symbol, value);
    std::string sliders = slider("batch", "batch", report.batches.size());
    if (!report.dimension.empty()) sliders += slider("dimension", report.dimension, report.values.size());
    sliders += slider("card", "card", report.cards.size());
    const std::string markup = fmt::format(
        "<p class=\"facts\">Host costs: {}. Drag: every answer was predicted beforehand.</p>\n"
        "<figure id=\"explorer\" class=\"spans\"><div class=\"sliders\">\n{}</div>\n"
        "<p id=\"answer\" aria-live=\"polite\"></p>\n"
        "<ul class=\"legend\"><li>latency, with its 90 % interval</li><li>host (dashed)</li><li>device "
        "(dotted)</li></ul>\n"
        "<svg class=\"ftax-chart plot\" viewBox=\"0 0 640 400\" role=\"img\" aria-label=\"latency over batch\"></svg>\n"
        "<figcaption>Where the host stands above the device, the GPU waits for the "
        "framework.</figcaption></figure>\n{}",
        escape_markup(report.host), sliders, warning_list(report.warnings));
    return page(title, markup, fmt::format("const data = {};\n{}", script_text(data), embedded_text(explorer_script)));
}

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
