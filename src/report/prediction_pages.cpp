#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <sstream>
#include <utility>

#include "graphs/base/embedded.hpp"
#include "graphs/files/escape.hpp"
#include "src/report/charts.hpp"
#include "src/report/launch_report.hpp"
#include "src/report/page.hpp"
#include "src/report/pages.hpp"
#include "src/report/quantities.hpp"

namespace ftax::report {
namespace {

std::vector<std::string> warnings_of(const PredictionReport& report, const Graph& graph) {
    std::vector<std::string> warnings =
        joined(joined(graph.warnings, report.device.warnings), joined(report.framework.warnings, report.warnings));
    for (const PredictionRow& row : report.rows) warnings = joined(std::move(warnings), row.prediction.warnings);
    return warnings;
}

std::string name_of_device_profile(const PredictionReport& report) {
    return fmt::format("{} {}", report.device.device.slug, report.device.version);
}

std::string name_of_framework_profile(const PredictionReport& report) {
    return fmt::format("{} {}, {}", report.framework.framework, report.framework.version, report.framework.host);
}

/// Operators without a rule, by what the model file calls them.
std::string uncovered_table(const Graph& graph) {
    std::map<std::string, std::size_t> counts;
    for (const Op& op : graph.ops)
        if (op.kind == OpKind::custom) ++counts[op.source.empty() ? op.name : op.source];
    if (counts.empty()) return "";
    const Columns<std::pair<const std::string, std::size_t>> columns{
        {"operator", "operator without a rule", Unit::text, [](const auto& entry) { return entry.first; }},
        {"count", "how many", Unit::plain, [](const auto& entry) { return entry.second; }}};
    return columns.select(counts, "=operator =count").page_table("uncovered");
}

/// Shares of a whole, each with a bar in the colour of its look.
struct NamedShare {
    std::string_view name, look;
    double value, share;
};

std::string shares_table(std::string_view id, std::string_view title, std::string_view value_title, Unit unit,
                         std::string_view share_title, const std::vector<NamedShare>& rows) {
    const Columns<NamedShare> columns{{"", std::string(title), Unit::text, &NamedShare::name},
                                      {"", std::string(value_title), unit, &NamedShare::value},
                                      {"", std::string(share_title), Unit::bars, [](const NamedShare& row) {
                                           return Json{{std::string(row.look), row.share}};
                                       }}};
    return columns.select(rows).page_table(id);
}

/// Host, versions and dimensions, in a line below the title.
std::string facts_line(const PredictionReport& report) {
    std::string text = fmt::format("Framework profile {}; device profile {}", name_of_framework_profile(report),
                                   name_of_device_profile(report));
    for (const auto& [symbol, value] : report.dims) text += fmt::format("; {} {}", symbol, value);
    return fmt::format("<p class=\"facts\">{}.</p>\n", escape_markup(text));
}

std::string crossover_paragraph(const CrossoverReport& crossover) {
    std::istringstream lines(print_crossover(crossover, {}));
    std::string html;
    for (std::string line; std::getline(lines, line);) {
        line.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(line.front())));
        html += (html.empty() ? "" : ".<br>") + escape_markup(line);
    }
    return fmt::format("<p id=\"crossover\">{}.</p>\n", html);
}

std::string predictions_section(const PredictionReport& report) {
    return section("Predictions", prediction_row_columns(report)
                                      .select(report.rows,
                                              "batch latency_s low_s high_s host_s device_s bound framework_overhead "
                                              "=items_per_s ?total_bytes ?fits ?measured_latency_s ?=error")
                                      .page_table("predictions"));
}

/// Host and device time by group, each with a bar as long as its share of the largest.
std::string breakdown_section(std::string_view title, std::string_view id, const std::vector<Share>& shares) {
    return section(
        fmt::format("By {}", title),
        share_columns(title, shares).select(shares, "=name =launches =kernels =host_s =device_s =bars").page_table(id));
}

/// Whose host and which profile, how wide the interval is, every warning, how much of the model (as the framework runs
/// it) has a rule, and what has none.
std::string rests_on_section(const PredictionReport& report, const Graph& graph) {
    const Coverage coverage = lowest_coverage(report.rows);
    const std::string table = shares_table("coverage", "of the model's", "have a rule", Unit::share, "share",
                                           {{"operators", "device", coverage.nodes, coverage.nodes},
                                            {"FLOPs", "device", coverage.flops, coverage.flops},
                                            {"host and device time", "device", coverage.time, coverage.time}});
    const std::string_view rule =
        "<p>Operators without a rule count as memory-bound. With several batches, the lowest share is shown.</p>\n";
    const bool unknown_host = report.framework.host == "reference" && !is_cpu(report.device.device);
    const Prediction& last = report.rows.back().prediction;
    const std::string facts = fmt::format(
        "<ul>\n{}<li>{}</li>\n</ul>\n",
        unknown_host ? fmt::format("<li>Host: {}; one measured latency (--anchor) narrows the interval</li>\n",
                                   escape_markup(report.framework.assumed))
                     : "",
        escape_markup(fmt::format(
            "90 % interval {} to {} around {}{}", duration(last.low_s), duration(last.high_s), duration(last.latency_s),
            last.widest_component.empty() ? "" : fmt::format("; mostly {}", last.widest_component))));
    return section("What the answer rests on", facts + warning_list(warnings_of(report, graph)) + table +
                                                   uncovered_table(graph) + std::string(rule));
}

/// What takes the memory of the device, each with a bar as long as its share of it.
std::string memory_section(const MemoryUse& memory) {
    std::vector<NamedShare> rows{
        {"weights", "", memory.weights_bytes},         {"keys and values", "", memory.cache_bytes},
        {"activations", "", memory.activations_bytes}, {"workspace", "", memory.workspace_bytes},
        {"context", "", memory.context_bytes},         {"all", "", memory.total_bytes()}};
    for (NamedShare& row : rows) {
        row.look = memory.fits() ? "device" : "host";
        row.share = std::min(1.0, row.value / memory.capacity_bytes);
    }
    return section(fmt::format("Memory: {} of {}{}", byte_size(memory.total_bytes()), byte_size(memory.capacity_bytes),
                               memory.fits() ? "" : ", does not fit"),
                   shares_table("memory", "part", "bytes", Unit::bytes, "of the device", rows));
}

/// Every parameter of both profiles with its source.
std::string provenance_section(const PredictionReport& report) {
    std::vector<std::pair<std::string, const Parameter*>> rows;
    for (const Parameter& p : report.device.parameters) rows.emplace_back(name_of_device_profile(report), &p);
    for (const Parameter& p : report.framework.parameters) rows.emplace_back(name_of_framework_profile(report), &p);
    using Row = std::pair<std::string, const Parameter*>;
    const auto columns =
        Columns<Row>{{"profile", "profile", Unit::text, &Row::first}}.including(parameter_columns(4), &Row::second);
    return section("Parameters",
                   folded("Each with its value and source",
                          columns.select(rows, "=profile =name =value =source").page_table("provenance")));
}

/// A small chart for each likely cause: the measured latencies and what it would have given.
std::string diagnosis_figures(const PredictionReport& report) {
    constexpr std::size_t most = 6;
    Chart frame{.y_label = "latency, ms",
                .series = {{.label = "predicted", .look = SeriesLook::line, .points = {}, .category = 7, .dash = 1},
                           {.label = "measured", .look = SeriesLook::measured, .points = {}}}};
    std::vector<double> batches;
    for (const PredictionRow& row : report.rows) {
        if (!row.measured || !row.batch) continue;
        batches.push_back(static_cast<double>(*row.batch));
        frame.series[0].points.push_back({batches.back(), row.prediction.latency_s * 1e3});
        frame.series[1].points.push_back({batches.back(), row.measured->latency_s * 1e3});
    }
    if (batches.size() < 2) return "";
    std::vector<Chart> charts;
    std::vector<ChartPoint> extent = frame.series[1].points;
    for (const Hypothesis& cause : report.diagnosis) {
        if (cause.share < negligible_share || charts.size() == most) continue;
        Chart& chart = charts.emplace_back(frame);
        chart.title = fmt::format("{}: {}", percent(cause.share), cause.sentence);
        Series& then = chart.series.emplace_back(
            Series{.label = "predicted then", .look = SeriesLook::line, .points = {}, .category = 0});
        for (std::size_t i = 0; i < batches.size(); ++i) then.points.push_back({batches[i], cause.latency_s[i] * 1e3});
        extent.insert(extent.end(), then.points.begin(), then.points.end());
        label_batches(chart, batches);
    }
    std::string html;
    for (Chart& chart : charts) {
        chart.extent = extent;
        html += section(chart.title, to_figure(chart, ""));
    }
    return fmt::format("<div class=\"panels spans\">\n{}</div>\n", html);
}

std::string what_next_sections(const PredictionReport& report) {
    std::string html;
    if (!report.advice.empty())
        html +=
            section("What next", advice_grid(report, "=name =latency_s =interval =speed =code").page_table("advice"));
    if (!report.diagnosis.empty())
        html += section(
            "What may explain the measurement",
            diagnosis_grid(report, "=sentence =latency_s =share").page_table("diagnosis") + diagnosis_figures(report));
    return html;
}

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
    const std::string most =
        kernels.size() > shown ? fmt::format("The {} of {} groups", shown, kernels.size()) : "Groups";
    return section("Roofline", to_figure(roofline_chart(kernels, device, fmt::format("Roofline of {}", of)),
                                         escape_markup(caption))) +
           section(most + " of equal kernels by their time",
                   columns.select(std::span(kernels).first(std::min(shown, kernels.size()))).page_table("kernels"));
}

constexpr std::size_t most_launches = 2500;     ///< on a page of 300 kB
constexpr std::size_t launches_in_markup = 50;  ///< shown without JavaScript, too
constexpr std::string_view launch_keys = "operator source module host_kind kernels host_s device_s bound";

/// Texts once each, and of each launch when it ran in nanoseconds, then its cells, texts by their places.
Json timeline_data(const Graph& graph, const Explanation& explanation) {
    std::map<std::string, std::size_t> places;
    const auto ns = [](double seconds) { return std::llround(seconds * 1e9); };
    const Grid table = launch_columns(graph).select(explanation.launches, launch_keys);
    auto launches = Json::array();
    for (std::size_t i = 0; i < std::min(most_launches, table.rows.size()); ++i) {
        const Span& span = explanation.timeline[i];
        Json& launch = launches.emplace_back(
            Json{ns(span.host_start_s), ns(span.host_end_s), ns(span.device_start_s), ns(span.device_end_s)});
        for (const Value& cell : table.rows[i]) {
            if (cell.exact.is_string()) {
                launch.push_back(
                    places.emplace(escape_terminal(cell.exact.get<std::string>()), places.size()).first->second);
            } else {
                launch.push_back(cell.exact.is_number_float() ? Json(ns(cell.exact)) : cell.exact);
            }
        }
    }
    std::vector<std::string> texts(places.size());
    for (const auto& [text, at] : places) texts[at] = text;
    return {{"texts", texts}, {"launches", std::move(launches)}};
}

std::string launches_section(const Graph& graph, const std::vector<OpPrediction>& launches, std::string_view at) {
    const std::size_t count = launches.size();
    const std::string title = count > most_launches ? fmt::format("The first {} of {}", most_launches, count)
                                                    : fmt::format("All {}, one by one", count);
    const Grid first = launch_columns(graph).select(
        std::span(launches).first(std::min(launches_in_markup, launches.size())), launch_keys);
    return section(fmt::format("Launches{}", at), folded(title, first.page_table("launches")));
}

/// What could not run, with the reason.
std::string skipped_list(const std::vector<const Choice*>& choices) {
    std::string html;
    for (const std::string& line : reasons_of(choices)) html += fmt::format("<li>{}</li>\n", escape_markup(line));
    return html.empty() ? "" : section("Not compared", fmt::format("<ul id=\"skipped\">\n{}</ul>\n", html));
}

Chart step_chart(const GenerationReport& report) {
    Chart chart{.title = fmt::format("{} on {}, {}, {}", report.run.model, report.run.device.device.name,
                                     report.run.framework.framework, name_of(report.run.precision)),
                .y_label = "milliseconds",
                .series = {}};
    const std::tuple<const char*, SeriesLook, double Generation::*> lines[] = {
        {"host, a step of decoding", SeriesLook::host, &Generation::decode_host_s},
        {"device, a step of decoding", SeriesLook::device, &Generation::decode_device_s},
        {"per token", SeriesLook::prediction, &Generation::tpot_s},
        {"first token", SeriesLook::line, &Generation::ttft_s}};
    std::vector<double> batches;
    for (const auto& [label, look, time_s] : lines) {
        Series& series = chart.series.emplace_back(Series{.label = label, .look = look, .points = {}});
        if (look == SeriesLook::line) series.category = 3;
        for (const GenerationRow& row : report.rows) {
            if (!row.runs() || row.model != shown(report).model) continue;
            batches.push_back(static_cast<double>(row.generation.request.batch));
            series.points.push_back({batches.back(), row.generation.*time_s * 1e3});
        }
    }
    mark_crossovers(chart, shown(report).crossover.batches, "decoding's crossover");
    label_batches(chart, std::move(batches));
    return chart;
}

std::string generations_section(const GenerationReport& report) {
    const Grid table = generation_columns(report).select(
        rows_that_run(report.rows), Differences(choices_of(report.rows)).keys(true) +
                                        "batch ttft_s tpot_s total_s low_s high_s tokens_per_s =prefill_bound "
                                        "=decode_bound =total_bytes fits ?dollars_per_million ?keeps_level");
    return section(fmt::format("Prompts of {} tokens, {} new ones", shown(report).generation.request.prompt,
                               shown(report).generation.request.new_tokens),
                   table.page_table("generations"));
}

}  // namespace

std::string prediction_page(const PredictionReport& report, const Graph& graph, const Explanation& last) {
    const Chart chart = latency_chart(report);
    const auto batch = report.rows.back().batch;
    const std::string at = batch ? fmt::format(" at batch {}", *batch) : "";
    std::string curve = to_figure(chart, "");
    if (report.crossover) curve += crossover_paragraph(*report.crossover);
    curve += fmt::format("<p>{}</p>\n", escape_markup(print_explained(last)));
    if (report.anchors)
        curve += fmt::format("<p id=\"anchors\">{}</p>\n", escape_markup(print_anchors(*report.anchors)));
    const std::string html =
        verdict_line(verdict_of(report)) + facts_line(report) + section("Latency over batch", curve) +
        what_next_sections(report) + rests_on_section(report, graph) + predictions_section(report) +
        (report.rows.back().memory ? memory_section(*report.rows.back().memory) : "") +
        breakdown_section("operator kind", "kinds", breakdown(graph, last.launches)) +
        roofline_section(report.device.device, graph, last, chart.title, at) +
        // when each launch ran, which a reader can zoom, and the modules as a tree (assets/timeline.js)
        section(fmt::format("Timeline{}", at), embedded_text("src/report/assets/timeline.html")) +
        launches_section(graph, last.launches, at) + provenance_section(report);
    return page(chart.title, html,
                fmt::format("const ran = {};\n{}", script_text(timeline_data(graph, last).dump()),
                            embedded_text("src/report/assets/timeline.js")));
}

std::string crossover_page(const PredictionReport& report, const PredictionReport& curve, const Graph& graph) {
    const Chart chart = latency_chart(curve);
    std::string found = to_figure(chart, "") + crossover_paragraph(*report.crossover);
    if (const auto& crossovers = report.crossover->crossovers; !crossovers.empty())
        found += crossover_columns().select(crossovers, "batch low high host_s gpu_waits").page_table("interval");
    return page("Crossover of " + chart.title, verdict_line(verdict_of(report)) + facts_line(report) +
                                                   section("Latency over batch", found) + what_next_sections(report) +
                                                   rests_on_section(report, graph) + predictions_section(report) +
                                                   provenance_section(report));
}

std::string headroom_page(const HeadroomReport& report, const Graph& graph) {
    double longest_s = report.run.rows.front().prediction.latency_s;
    for (const FrameworkSwitch& other : report.switches) longest_s = std::max(longest_s, other.latency_s);
    Columns<FrameworkSwitch> switched = switch_columns(report);
    switched.add({"bars", "by host or device", Unit::bars, [=](const FrameworkSwitch& row) {
                      return Json{{row.bound == Bound::host ? "host" : "device", row.latency_s / longest_s}};
                  }});
    const std::string within = fmt::format("Within {:.4g} % more latency", 100 * report.budget);
    std::string html =
        verdict_line(verdict_of(report)) + facts_line(report.run) +
        section(within, growth_columns()
                            .select(report.growths,
                                    "property =from =to =growth latency_s bound ?next_latency_s ?=next_to ?=skipped")
                            .page_table("growths")) +
        rests_on_section(report.run, graph);
    for (const Headroom& growth : report.growths) {
        if (growth.curve.empty()) continue;
        PredictionReport curve = report.run;  // of widths in place of batches
        curve.rows.clear();
        for (const auto& [width, prediction] : growth.curve)
            curve.rows.push_back({std::lround(100 * width), prediction, {}, {}});
        Chart chart = latency_chart(curve);
        chart.x_label = "width of the layers, % of the model's";
        chart.marks = {{100 * growth.to, 100, 100 * growth.to, within}};
        html += section("Latency over width",
                        to_figure(chart, "Wider layers at the same latency: the flat part is marked."));
    }
    if (!report.switches.empty())
        html += section(
            fmt::format("Instead of {}", report.run.framework.framework),
            switched.select(report.switches, "framework latency_s =speed bound =bars =note").page_table("frameworks"));
    html += provenance_section(report.run);
    return page(fmt::format("Headroom of {} on {}", report.run.model, report.run.device.device.name), html);
}

std::string comparison_page(const ComparisonReport& report) {
    std::vector<std::string> warnings = report.warnings;
    for (const ComparisonRow& row : report.rows)
        if (row.prediction) warnings = joined(std::move(warnings), row.prediction->warnings);
    const std::vector<const Choice*> choices = choices_of(report.rows);
    const Grid table = comparison_columns(report).select(
        rows_that_run(report.rows),
        Differences(choices).keys(true) +
            "batch latency_s low_s high_s items_per_s ?dollars_per_million ?keeps_level "
            "bound evidence ratio_to_best host_s device_s =bars framework_overhead =total_and_fits");
    const std::string predictions =
        table.page_table("comparison") +
        fmt::format(
            "<p class=\"facts\">To best: latency against the fastest at the same batch. "
            "Overhead: share of the latency during which the device waits. Host costs: {}.</p>\n",
            escape_markup(report.rows.front().host)) +
        warning_list(warnings);
    return page(title_of(report), verdict_line(report.ranking.verdict) + choice_figures(choices, "latency") +
                                      section("Predictions", predictions) + skipped_list(choices));
}

std::string generation_page(const GenerationReport& report, const ExplainedPass& prefill, const ExplainedPass& decode) {
    const Chart chart = step_chart(report);
    std::vector<std::string> warnings = report.run.warnings;
    for (const GenerationRow& row : report.rows) warnings = joined(std::move(warnings), row.generation.warnings);
    const auto kinds = [](const ExplainedPass& pass) { return breakdown(pass.graph, pass.explanation.launches); };
    const std::vector<const Choice*> choices = choices_of(report.rows);
    Differences differences(choices);
    differences.batch = false;
    const std::string html = verdict_line(report.ranking.verdict) + facts_line(report.run) +
                             (choices.size() > 1 ? choice_figures(choices, "prompt and all tokens") : "") +
                             section("Phases: " + differences.name(shown(report)), to_figure(chart, "")) +
                             memory_section(shown(report).generation.memory) + generations_section(report) +
                             breakdown_section("operator kind, prompt", "prefill", kinds(prefill)) +
                             breakdown_section("operator kind, a step of decoding", "decode", kinds(decode)) +
                             section("Warnings", warning_list(warnings)) + skipped_list(choices) +
                             provenance_section(report.run);
    return page(chart.title, html);
}

}  // namespace ftax::report
