#include "src/report/latency_chart.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/report/units.hpp"

namespace ftax::report {

Chart latency_chart(const PredictionReport& report) {
    Chart chart{.title = fmt::format("{} on {}, {}, {}", report.model, report.device.device.name,
                                     report.framework.framework, name_of(report.precision)),
                .y_label = "latency, ms",
                .series = {},
                .band_low = {},
                .band_high = {},
                .mark_x = {},
                .mark_label = {}};
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
    if (report.crossover && report.crossover->crossover) {
        chart.mark_x = report.crossover->crossover->batch;
        chart.mark_low = report.crossover->crossover->low;
        chart.mark_high = report.crossover->crossover->high;
        chart.mark_label = fmt::format("crossover: batch {}", significant(*chart.mark_x));
    }
    return chart;
}

}  // namespace ftax::report
