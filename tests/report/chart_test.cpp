#include "src/report/chart.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "src/report/latency_chart.hpp"

using namespace ftax;
using namespace ftax::report;

namespace {

PredictionReport example(const std::string& model) {
    PredictionReport report;
    report.model = model;
    report.device.device.name = "NVIDIA T4";
    report.framework.framework = "pytorch-eager";
    for (const std::int64_t batch : {16, 1, 4}) {  // as a user may list them
        const double device_s = 1e-3 * static_cast<double>(batch);
        const double latency_s = std::max(5e-3, device_s);
        report.rows.push_back({batch,
                               {.latency_s = latency_s,
                                .low_s = 0.9 * latency_s,
                                .high_s = 1.1 * latency_s,
                                .host_s = 5e-3,
                                .device_s = device_s},
                               {},
                               {}});
    }
    report.rows[1].measured = Measured{.latency_s = 5.5e-3, .device_s = {}};
    report.crossover = CrossoverReport{.crossover = Crossover{.batch = 5, .low = 4, .high = 6}, .largest = 4096};
    return report;
}

}  // namespace

TEST_CASE("ticks of a logarithmic axis lie inside it and thin out to powers of ten") {
    CHECK(log_ticks(0.9, 11) == std::vector<double>{1, 2, 5, 10});
    for (const double tick : log_ticks(0.03, 7e5))
        CHECK(std::abs(std::log10(tick) - std::round(std::log10(tick))) < 1e-9);
}

TEST_CASE("a latency chart runs from left to right, and larger latencies stand higher") {
    const std::string svg = to_svg(latency_chart(example("resnet18")));
    std::smatch match;
    REQUIRE(std::regex_search(svg, match,
                              std::regex("class=\"line device\" d=\"M([0-9.]+) ([0-9.]+)L([0-9.]+) ([0-9.]+)L")));
    CHECK(std::stod(match[1]) < std::stod(match[3]));
    CHECK(std::stod(match[2]) > std::stod(match[4]));
    CHECK(svg.find("crossover: batch 5.00") != std::string::npos);
    CHECK(svg.find("measured: 1, 5.50") != std::string::npos);
    CHECK(svg.find("nan") == std::string::npos);
    CHECK(svg.find("inf") == std::string::npos);
}

TEST_CASE("a crossover stands in a band from its low to its high end") {
    Chart chart = latency_chart(example("resnet18"));
    CHECK(chart.mark_low == 4);
    CHECK(chart.mark_high == 6);
    std::smatch match;
    const std::string svg = to_svg(chart);
    REQUIRE(std::regex_search(svg, match, std::regex("class=\"band mark\" d=\"M([0-9.]+) [0-9.]+H([0-9.]+)V")));
    std::smatch line;
    REQUIRE(std::regex_search(svg, line, std::regex("class=\"mark\" d=\"M([0-9.]+) ")));
    CHECK(std::stod(match[1]) < std::stod(line[1]));
    CHECK(std::stod(line[1]) < std::stod(match[2]));
}

TEST_CASE("a figure leaves title and legend to the page, a document has both") {
    const Chart chart = latency_chart(example("resnet18"));
    const std::string title = ">resnet18 on NVIDIA T4, pytorch-eager, fp32<";
    CHECK(to_svg(chart).find(title) != std::string::npos);
    const std::string figure = to_figure(chart, "");
    CHECK(figure.find(title) == std::string::npos);
    CHECK(figure.find("</svg> host</li>") != std::string::npos);
    CHECK(figure.find("<style>") == std::string::npos);
}

TEST_CASE("a square chart has one range on both axes, and dots that no eye tells apart stand once") {
    Chart chart{.title = "dots", .x_label = "x", .y_label = "y", .square = true};
    chart.series.push_back(
        {.label = "many", .look = SeriesLook::scatter, .points = {{1, 1}, {1.0001, 1}, {100, 20}}, .category = 1});
    const std::string figure = to_figure(chart, "");
    const std::size_t dots = figure.find("class=\"dot cloud k1\"");
    REQUIRE(dots != std::string::npos);
    const std::string path = figure.substr(dots, figure.find("/>", dots) - dots);
    CHECK(std::count(path.begin(), path.end(), 'M') == 2);
    CHECK(std::count(path.begin(), path.end(), 'z') == 2);
    for (const char* tick : {">100<", ">1<"}) {
        const std::size_t first = figure.find(tick);
        REQUIRE(first != std::string::npos);
        CHECK(figure.find(tick, first + 1) != std::string::npos);  // on the other axis too
    }
}

TEST_CASE("names of references that end close to each other do not lie on each other") {
    Chart chart{.title = "roofs", .x_label = "x", .y_label = "y"};
    for (const double peak : {1e3, 8e13, 1.6e14, 9e13}) {
        chart.series.push_back({.label = "roof", .look = SeriesLook::reference, .points = {{1, peak}, {4, peak}}});
    }
    const std::string figure = to_figure(chart, "");
    const std::regex name("<text class=\"reference\" x=\"[0-9.]+\" y=\"([0-9.]+)\"");
    std::vector<double> heights;
    for (auto at = std::sregex_iterator(figure.begin(), figure.end(), name); at != std::sregex_iterator(); ++at) {
        heights.push_back(std::stod((*at)[1]));
    }
    REQUIRE(heights.size() == 4);
    for (std::size_t i = 1; i < heights.size(); ++i) CHECK(heights[i] - heights[i - 1] >= 24 - 1e-9);
}

TEST_CASE("large numbers of an axis are short") {
    Chart chart{.title = "roof", .x_label = "x", .y_label = "y"};
    chart.series.push_back({.label = "roof", .look = SeriesLook::reference, .points = {{1, 9e3}, {4, 2.1e4}}});
    const std::string figure = to_figure(chart, "");
    CHECK(figure.find(">10k<") != std::string::npos);
    CHECK(figure.find(">roof</text>") != std::string::npos);
    CHECK(figure.find("<li>") == std::string::npos);  // a reference is named where it ends, not in the legend
}

TEST_CASE("BAD_INPUTS 6: names are text in a chart, never markup") {
    const std::string svg = to_svg(latency_chart(example("<script>alert(1)</script>\x1b[31m\n\"'&")));
    CHECK(svg.find("<script") == std::string::npos);
    CHECK(svg.find('\x1b') == std::string::npos);
    CHECK(svg.find("&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[31m\\n&quot;&#39;&amp;") != std::string::npos);
}
