#include "src/report/validation_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/report/units.hpp"

namespace ftax::report {
namespace {

/// Values of the column that colours the dots; all empty when none has several.
std::vector<std::string> colour_values(const CsvTable& table) {
    for (const std::string_view column : {"framework", "gpu", "precision", "op"}) {
        auto values = column_values(table, column);
        if (values && std::adjacent_find(values->begin(), values->end(), std::not_equal_to<>()) != values->end()) {
            return *std::move(values);
        }
    }
    return std::vector<std::string>(table.rows());
}

/// Category of each value: the most frequent ones have their own, the last one is shared by the others when they are
/// many.
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

}  // namespace

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
    constexpr std::size_t most_notes = 2000;  // beyond, a page of them would be slow to open
    constexpr std::size_t few = 200;          // which have room for larger dots
    Chart chart{
        .title = "Predicted against measured", .x_label = "measured, ms", .y_label = "predicted, ms", .square = true};
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

}  // namespace ftax::report
