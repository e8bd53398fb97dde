#include <doctest/doctest.h>

#include "src/report/serving_report.hpp"

using namespace ftax;
using namespace ftax::report;

namespace {

/// Three rates of one row, whose slowest requests take `tail` times the median.
ServingReport example(double tail) {
    ServingReport report{.model = "m", .workload = "w", .rows = std::vector<ServingRow>(1)};
    ServingRow& row = report.rows[0];
    row.device = "t4";
    row.framework = "vllm";
    row.latency_s = 1;
    row.items_per_s = 10;
    row.energy_per_item_j = 2;
    row.serving.timeline = {{.time_s = 0}, {.time_s = 1}};
    for (const double rate : {1.0, 2.0, 4.0}) row.rates.push_back({rate, 0.1 * rate, 0.1 * tail * rate});
    return report;
}

}  // namespace

TEST_CASE("the chart of rates draws the tail apart from the median") {
    const std::string close = serving_page(example(1)), apart = serving_page(example(20));
    CHECK(close != apart);
    for (const char* line : {"p50", "p99"}) CHECK(apart.find(line) != std::string::npos);
}

TEST_CASE(
    "the chart of rates marks the offered rate and the latency that is aimed at, which no choice of a line hides") {
    ServingReport report = example(2);
    CHECK(serving_page(report).find("offered") == std::string::npos);
    CHECK(serving_page(report).find("target") == std::string::npos);
    report.offered_per_s = 3;
    report.level.latency_s = 0.5;
    report.rows.push_back(report.rows[0]);
    report.rows[1].device = "l4";
    const std::string page = serving_page(report);
    CHECK(page.find(">offered: 3.00 per second</text>") != std::string::npos);
    CHECK(page.find(">target: 500 ms</text>") != std::string::npos);
    CHECK(page.find("<g>\n<path class=\"line reference\"") != std::string::npos);
    CHECK(page.find("data-series=\"1\" class=\"on\"") != std::string::npos);  // the best, after the target
    CHECK(page.find(">100 ms</text>") != std::string::npos);
    CHECK(page.find(">200 ms</text>") != std::string::npos);
}
