#include "src/report/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "ftax/precision.hpp"
#include "src/report/page.hpp"

namespace ftax::report {
namespace {

/// Values of the column that colours the dots; all empty when none has several.
std::vector<std::string> colour_values(const CsvTable& table) {
    for (const std::string_view column : {"framework", "gpu", "precision", "op"}) {
        auto values = column_values(table, column);
        if (values && std::ranges::adjacent_find(*values, std::not_equal_to<>()) != values->end())
            return *std::move(values);
    }
    return std::vector<std::string>(table.rows());
}

/// Category of each value: the most frequent ones have their own, the others share the last one.
std::map<std::string, std::size_t> categories_of(const std::vector<std::string>& values) {
    std::map<std::string, std::size_t> counts;
    for (const std::string& value : values) ++counts[value];
    std::vector<std::pair<std::string, std::size_t>> order(counts.begin(), counts.end());
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::map<std::string, std::size_t> categories;
    for (std::size_t i = 0; i < order.size(); ++i) categories[order[i].first] = std::min(i, category_count - 1);
    return categories;
}

std::string note_of(const CsvTable& table, std::size_t i, const ValidatedRow& row) {
    return fmt::format("{}: measured {}, predicted {} ({:+.1f} %)", identity_of(table, i), duration(row.measured_s),
                       duration(row.prediction->latency_s), 100 * (row.prediction->latency_s / row.measured_s - 1));
}

std::optional<double> peak_of(const DeviceSpec& device, std::string_view path) {
    const auto known = math_path_from_name(path);
    return known ? device.peak(*known) : std::nullopt;
}

std::string note_of(const RooflineKernel& kernel, double device_s) {
    std::string note = fmt::format("{} × {} ({}, {}): {} each, {} of device time; {} at {} FLOP per byte",
                                   kernel.launches, kernel.op, kernel.name, kernel.path, duration(kernel.seconds),
                                   percent(kernel.launches * kernel.seconds / device_s),
                                   quantity(kernel.flops_per_s(), "FLOP/s"), significant(kernel.intensity()));
    if (kernel.roof_flops_per_s > 0) note += fmt::format(", {:.0f} % of the roof", 100 * kernel.of_roof());
    return note;
}

Series roof(std::string_view path, double peak, double bandwidth, double from, double to) {
    return {.label = fmt::format("{} {}", path, quantity(peak, "FLOP/s")),
            .look = SeriesLook::reference,
            .points = {{from, from * bandwidth}, {peak / bandwidth, peak}, {to, peak}}};
}

}  // namespace

void mark_crossovers(Chart& chart, const std::vector<Crossover>& crossovers, std::string_view label) {
    for (const Crossover& crossover : crossovers)
        chart.marks.push_back({crossover.batch, crossover.low, crossover.high,
                               fmt::format("{}: batch {}", label, significant(crossover.batch))});
}

std::string choice_figures(const std::vector<const Choice*>& choices, const Chart& frame,
                           const std::function<std::vector<ChartPoint>(const Choice&)>& points_of) {
    Differences differences(choices);
    differences.batch = false;
    Differences others = differences;
    others.device = false;
    const bool by_device = differences.device && (others.framework || others.precision || others.cards);
    std::map<std::string, std::size_t> looks;
    std::vector<Chart> charts;
    std::vector<ChartPoint> extent;
    for (const Choice* choice : choices) {
        if (!choice->runs()) continue;
        const std::vector<ChartPoint> points = points_of(*choice);
        if (points.empty()) continue;
        const std::string title = by_device ? choice->device : frame.title;
        const std::string name = (by_device ? others : differences).name(*choice);
        const std::size_t look = std::min(looks.try_emplace(name, looks.size()).first->second, category_count - 1);
        auto chart = std::ranges::find(charts, title, &Chart::title);
        if (chart == charts.end()) {
            chart = charts.insert(chart, frame);
            chart->title = title;
        }
        auto line = std::ranges::find(chart->series, name, &Series::label);
        if (line == chart->series.end())
            line = chart->series.insert(
                line, {.label = name, .look = SeriesLook::line, .points = {}, .category = look, .dash = look});
        line->points.insert(line->points.end(), points.begin(), points.end());
        extent.insert(extent.end(), points.begin(), points.end());
    }
    std::string html;
    for (Chart& chart : charts) {
        chart.extent = extent;
        if (choices.size() > 1) chart.picked = frame.series.size();  // the best comes first
        html += section(chart.title, to_figure(chart, ""));
    }
    return charts.size() > 1 ? fmt::format("<div class=\"panels spans\">\n{}</div>\n", html) : html;
}

std::string choice_figures(const std::vector<const Choice*>& choices, std::string_view latency) {
    std::vector<double> batches;
    for (const Choice* choice : choices)
        if (choice->runs() && choice->latency_s && choice->batch)
            batches.push_back(static_cast<double>(*choice->batch));
    const bool in_seconds =
        std::ranges::all_of(choices, [](const Choice* c) { return c->latency_s.value_or(1) >= 0.1; });
    Chart frame{.title = "Latency over batch",
                .y_label = fmt::format("{}, {}", latency, in_seconds ? "s" : "ms"),
                .series = {}};
    label_batches(frame, batches);
    return choice_figures(choices, frame, [&](const Choice& choice) {
        if (!choice.latency_s) return std::vector<ChartPoint>();
        const double time = *choice.latency_s * (in_seconds ? 1 : 1e3);
        return std::vector<ChartPoint>{{.x = static_cast<double>(choice.batch.value_or(1)),
                                        .y = time,
                                        .low = time * choice.low,
                                        .high = time * choice.high}};
    });
}

Chart latency_chart(const PredictionReport& report) {
    Chart chart{.title = fmt::format("{} on {}, {}, {}", report.model, report.device.device.name,
                                     report.framework.framework, name_of(report.precision)),
                .y_label = "latency, ms",
                .series = {}};
    chart.series = {{.label = "host", .look = SeriesLook::host, .points = {}},
                    {.label = "device", .look = SeriesLook::device, .points = {}},
                    {.label = "prediction, 90 % interval", .look = SeriesLook::prediction, .points = {}},
                    {.label = "measured", .look = SeriesLook::measured, .points = {}}};
    std::vector<double> batches;
    for (const PredictionRow& row : report.rows) {
        const double batch = static_cast<double>(row.batch.value_or(1));
        if (row.batch) batches.push_back(batch);
        const Prediction& p = row.prediction;
        const double times_s[] = {p.host_s, p.device_s, p.latency_s, row.measured ? row.measured->latency_s : 0};
        for (std::size_t i = 0; i < std::size(times_s); ++i)
            if (times_s[i] > 0) chart.series[i].points.push_back({batch, times_s[i] * 1e3});
        chart.series[2].points.back().low = p.low_s * 1e3;
        chart.series[2].points.back().high = p.high_s * 1e3;
    }
    if (chart.series.back().points.empty()) chart.series.pop_back();
    label_batches(chart, std::move(batches));
    if (report.crossover) mark_crossovers(chart, report.crossover->crossovers, "crossover");
    return chart;
}

std::string identity_of(const CsvTable& table, std::size_t row) {
    std::string text;
    for (const std::string_view name :
         {"model", "op", "shape", "gpu", "framework", "precision", "option", "mode", "seq", "input", "batch", "run"}) {
        const auto column = table.column(name);
        if (!column || table.row(row)[*column].empty()) continue;
        const bool number = name == "batch" || name == "seq" || name == "input";
        text += fmt::format("{}{}{}", text.empty() ? "" : ", ", number ? std::string(name) + " " : "",
                            table.row(row)[*column]);
    }
    return text;
}

Chart validation_chart(const CsvTable& table, std::span<const ValidatedRow> rows) {
    constexpr std::size_t most_notes = 800;  // beyond, a page of them would be slow to open
    constexpr std::size_t few = 200;         // which have room for larger dots
    Chart chart{.title = "Predicted against measured",
                .x_label = "measured",
                .y_label = "predicted",
                .square = true,
                .times = true};
    const std::vector<std::string> values = colour_values(table);
    const auto categories = categories_of(values);
    const bool others = categories.size() > category_count;
    std::vector<Series> series(std::min(categories.size(), category_count));
    double low = 0, high = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i].prediction) continue;
        const std::size_t category = categories.at(values[i]);
        Series& target = series[category];
        target.label = others && category == category_count - 1 ? "others" : values[i];
        const double measured_ms = rows[i].measured_s * 1e3, predicted_ms = rows[i].prediction->latency_s * 1e3;
        target.points.push_back({measured_ms, predicted_ms, rows.size() > few ? 0.0 : 4.5,
                                 rows.size() > most_notes ? "" : note_of(table, i, rows[i])});
        low = low > 0 ? std::min({low, measured_ms, predicted_ms}) : std::min(measured_ms, predicted_ms);
        high = std::max({high, measured_ms, predicted_ms});
    }
    for (std::size_t i = 0; i < series.size(); ++i) {
        if (series[i].points.empty()) continue;
        series[i].look = SeriesLook::scatter;
        series[i].category = i;
        series[i].label =
            fmt::format("{} ({})", series[i].label.empty() ? "rows" : series[i].label, series[i].points.size());
        chart.series.push_back(std::move(series[i]));
    }
    chart.series.push_back(
        {.label = "predicted = measured", .look = SeriesLook::reference, .points = {{low, low}, {high, high}}});
    return chart;
}

std::vector<RooflineKernel> roofline_kernels(const DeviceSpec& device, const Graph& graph,
                                             const Explanation& explanation) {
    std::map<std::tuple<std::string, std::string, std::string, double, double, double>, RooflineKernel> groups;
    for (std::size_t i = 0; i < explanation.launches.size(); ++i) {
        const OpPrediction& launch = explanation.launches[i];
        const std::string op(launch.op == no_op ? name_of(launch.host_kind) : name_of(graph.ops[launch.op].kind));
        for (const KernelDetail& detail : explanation.kernels[i]) {
            if (!(detail.flops > 0 && detail.bytes > 0 && detail.seconds > 0)) continue;
            const auto [at, added] = groups.try_emplace(
                {op, detail.name, detail.path, detail.flops, detail.bytes, detail.seconds}, RooflineKernel{detail, op});
            RooflineKernel& kernel = at->second;
            ++kernel.launches;
            if (!added) continue;
            const double slope = kernel.intensity() * device.memory_bandwidth_bytes_per_s;
            kernel.roof_flops_per_s = std::min(peak_of(device, detail.path).value_or(slope), slope);
        }
    }
    auto kernels = mapped(groups, [](auto& group) { return std::move(group.second); });
    std::ranges::stable_sort(kernels, std::greater<>(), [](const RooflineKernel& k) { return k.launches * k.seconds; });
    return kernels;
}

Chart roofline_chart(const std::vector<RooflineKernel>& kernels, const DeviceSpec& device, std::string_view title) {
    Chart chart{.title = std::string(title), .x_label = "FLOP per byte", .y_label = "achieved FLOP/s"};
    double low = kernels.front().intensity(), high = low, device_s = 0;
    std::map<double, std::string_view> peaks;  // paths that calculate, by their rate
    for (const RooflineKernel& kernel : kernels) {
        low = std::min(low, kernel.intensity());
        high = std::max(high, kernel.intensity());
        device_s += kernel.launches * kernel.seconds;
        if (const auto peak = peak_of(device, kernel.path)) peaks.emplace(*peak, kernel.path);
    }
    const double bandwidth = device.memory_bandwidth_bytes_per_s;
    if (!peaks.empty()) high = std::max(high, 4 * peaks.rbegin()->first / bandwidth);
    for (const auto& [peak, path] : peaks) chart.series.push_back(roof(path, peak, bandwidth, low, high));
    constexpr double largest = 14, least = 3;
    for (const Bound bound : {Bound::compute, Bound::memory, Bound::latency_floor}) {
        Series series{.label = std::string(name_of(bound)), .look = SeriesLook::scatter, .points = {}, .category = 0};
        series.category = bound == Bound::compute ? 0 : bound == Bound::memory ? 2 : 1;
        for (const RooflineKernel& kernel : kernels) {
            if (kernel.bound != bound) continue;
            const double share = kernel.launches * kernel.seconds / device_s;
            series.points.push_back({kernel.intensity(), kernel.flops_per_s(),
                                     std::max(least, largest * std::sqrt(share)), note_of(kernel, device_s)});
        }
        if (!series.points.empty()) chart.series.push_back(std::move(series));
    }
    return chart;
}

}  // namespace ftax::report
