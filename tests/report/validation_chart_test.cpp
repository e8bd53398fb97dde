#include <doctest/doctest.h>
#include <fmt/format.h>

#include "src/report/charts.hpp"
#include "tests/approx.hpp"

using namespace ftax;
using namespace ftax::report;

namespace {

ValidatedRow row(double measured_ms, double predicted_ms) {
    const double s = predicted_ms * 1e-3;
    return {.measured_s = measured_ms * 1e-3, .prediction = RowPrediction{s, 0.9 * s, 1.1 * s, Bound::host, 1}};
}

}  // namespace

TEST_CASE("a scatter is coloured by the first column that has several values; few rows say what they are") {
    const CsvTable table("gpu,framework,model,batch,latency_ms\nT4,,bert,1,5\nT4,torchscript,bert,2,6\nT4,,bert,4,7\n",
                         "rows.csv");
    const std::vector<ValidatedRow> rows{row(5, 6), row(6, 6), {.measured_s = 7e-3, .skipped = "why"}};
    const Chart chart = validation_chart(table, rows);
    REQUIRE(chart.series.size() == 3);
    CHECK(chart.series[0].label == "pytorch-eager (1)");  // the row without a prediction has no dot
    CHECK(chart.series[1].label == "torchscript (1)");
    CHECK(chart.series[0].points[0].x == approx(5));
    CHECK(chart.series[0].points[0].y == approx(6));
    CHECK(chart.series[0].points[0].note == "bert, T4, batch 1: measured 5.00 ms, predicted 6.00 ms (+20.0 %)");
    CHECK(chart.series[2].points.front().x == approx(5));
    CHECK(chart.series[2].points.back().y == approx(6));
}

TEST_CASE("more groups than colours share the last one") {
    std::string text = "gpu,model,batch,latency_ms\n";
    std::vector<ValidatedRow> rows;
    for (int gpu = 0; gpu < 12; ++gpu) {
        for (int i = 0; i < 12 - gpu; ++i) {
            text += fmt::format("gpu{},bert,1,5\n", gpu);
            rows.push_back(row(5, 5));
        }
    }
    const Chart chart = validation_chart(CsvTable(text, "rows.csv"), rows);
    REQUIRE(chart.series.size() == category_count + 1);
    CHECK(chart.series.front().label == "gpu0 (12)");
    CHECK(chart.series[category_count - 1].label == "others (15)");  // 5 + 4 + 3 + 2 + 1
}

TEST_CASE("errors by a column: numbers in their order, an empty framework as its default") {
    const CsvTable table("gpu,framework,batch,latency_ms\nT4,,16,10\nT4,torchscript,2,10\nT4,,16,10\n", "rows.csv");
    const std::vector<ValidatedRow> rows{row(10, 11), row(10, 12), row(10, 9)};
    const auto batches = errors_by(*column_values(table, "batch"), rows);
    REQUIRE(batches.size() == 2);
    CHECK(batches[0].values.front() == "2");
    CHECK(batches[0].errors.mean == approx(0.2));
    CHECK(batches[1].errors.rows == 2);
    CHECK(batches[1].errors.bias == 0);
    CHECK(column_values(table, "framework") ==
          std::vector<std::string>{"pytorch-eager", "torchscript", "pytorch-eager"});
    CHECK_FALSE(column_values(table, "colour"));
}

TEST_CASE("the axes of measured and predicted times have units") {
    std::string text = "gpu,model,batch,latency_ms\n";
    std::vector<ValidatedRow> rows;
    for (const double ms : {0.02, 3.0, 40'000.0}) {
        text += fmt::format("T4,bert,1,{}\n", ms);
        rows.push_back(row(ms, ms));
    }
    const std::string svg = to_svg(validation_chart(CsvTable(text, "rows.csv"), rows));
    for (const char* tick : {"100 µs", "1 ms", "100 ms", "10 s"}) {
        const std::string label = fmt::format(">{}</text>", tick);
        const std::size_t on_x = svg.find(label);
        CHECK_MESSAGE(on_x != std::string::npos, tick);
        CHECK_MESSAGE(svg.find(label, on_x + 1) != std::string::npos, tick);  // on the other axis
    }
    CHECK(svg.find(">measured</text>") != std::string::npos);
}
