#include "src/report/latency_chart.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/report/units.hpp"

namespace ftax::report {

void mark_crossovers(Chart& chart, const std::vector<Crossover>& crossovers, std::string_view label) {
    for (const Crossover& crossover : crossovers) {
        chart.marks.push_back({crossover.batch, crossover.low, crossover.high,
                               fmt::format("{}: batch {}", label, significant(crossover.batch))});
    }
}

Chart latency_chart(const PredictionReport& report) {
    Chart chart{.title = fmt::format("{} on {}, {}, {}", report.model, report.device.device.name,
                                     report.framework.framework, name_of(report.precision)),
                .y_label = "latency, ms",
                .series = {},
                .band_low = {},
                .band_high = {}};
    std::vector<const PredictionRow*> rows;
    for (const PredictionRow& row : report.rows) rows.push_back(&row);
    std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->batch < b->batch; });
    Series host{.label = "host", .look = SeriesLook::host, .points = {}};
    Series device{.label = "device", .look = SeriesLook::device, .points = {}};
    Series prediction{.label = "prediction, 90 % interval", .look = SeriesLook::prediction, .points = {}};
    Series measured{.label = "measured", .look = SeriesLook::measured, .points = {}};
    const auto add = [](std::vector<ChartPoint>& points, double batch, double seconds) {
        if (seconds > 0) points.push_back({batch, seconds * 1e3});
    };
    std::vector<double> batches;
    for (const PredictionRow* row : rows) {
        const double batch = static_cast<double>(row->batch.value_or(1));
        if (row->batch) batches.push_back(batch);
        add(host.points, batch, row->prediction.host_s);
        add(device.points, batch, row->prediction.device_s);
        add(prediction.points, batch, row->prediction.latency_s);
        add(chart.band_low, batch, row->prediction.low_s);
        add(chart.band_high, batch, row->prediction.high_s);
        if (row->measured) add(measured.points, batch, row->measured->latency_s);
    }
    label_batches(chart, std::move(batches));
    chart.series = {std::move(host), std::move(device), std::move(prediction)};
    if (!measured.points.empty()) chart.series.push_back(std::move(measured));
    if (report.crossover) mark_crossovers(chart, report.crossover->crossovers, "crossover");
    return chart;
}

}  // namespace ftax::report
