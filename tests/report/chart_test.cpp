#include "src/report/chart.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "src/report/charts.hpp"
#include "tests/approx.hpp"

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
    report.crossover = CrossoverReport{.crossovers = {{.batch = 5, .low = 4, .high = 6}}, .largest = 4096};
    return report;
}

}  // namespace

TEST_CASE("ticks of a logarithmic axis lie inside it and thin out to powers of ten") {
    CHECK(log_ticks(0.9, 11) == std::vector<double>{1, 2, 5, 10});
    CHECK(log_ticks(2.9, 5.4) == std::vector<double>{3, 4, 5});  // where one of 1, 2 and 5 would stand alone
    CHECK(log_ticks(580, 1900).back() > 1700);                   // not 600 to 1000 alone
    const std::vector<double> equal = log_ticks(0.0236, 0.0316);
    REQUIRE(equal.size() == 8);
    CHECK(equal.front() == approx(0.024));
    CHECK(equal.back() == approx(0.031));
    CHECK(log_ticks(7, 7) == std::vector<double>{7});
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

TEST_CASE("a single batch is labelled, and each of its times and the interval have a width") {
    PredictionReport report = example("resnet18");
    report.rows.resize(1);
    report.rows[0].batch = 7;
    report.crossover.reset();
    const std::string figure = to_figure(latency_chart(report), "");
    CHECK(figure.find(">7</text>") != std::string::npos);
    for (const char* look : {"line host", "line device", "line prediction"}) {
        CAPTURE(look);
        CHECK(std::regex_search(figure, std::regex(std::string(look) + "\" d=\"M[0-9.]+ [0-9.]+h24\"")));
    }
    std::smatch match;
    REQUIRE(
        std::regex_search(figure, match, std::regex("band prediction\" d=\"M[0-9.]+ ([0-9.]+)h24V([0-9.]+)h-24Z\"")));
    CHECK(std::stod(match[1]) < std::stod(match[2]));

    report.rows[0].batch.reset();
    const std::string fixed = to_figure(latency_chart(report), "");
    CHECK(fixed.find(">batch: the model fixes it</text>") != std::string::npos);
    CHECK(fixed.find(">1</text>") == std::string::npos);
}

TEST_CASE("few batches are labelled as they are, as far as their names have room; many at powers of ten") {
    const auto labels = [](std::vector<double> batches) {
        Chart chart{.title = "batches", .y_label = "y"};
        Series line{.label = "line", .look = SeriesLook::line, .points = {}};
        for (const double batch : batches) line.points.push_back({batch, 1});
        chart.series.push_back(std::move(line));
        label_batches(chart, std::move(batches));
        const std::string figure = to_figure(chart, "");
        std::vector<std::string> found;
        const std::regex label("text-anchor=\"middle\">([0-9]+)</text>");
        for (auto at = std::sregex_iterator(figure.begin(), figure.end(), label); at != std::sregex_iterator(); ++at)
            found.push_back((*at)[1]);
        return found;
    };
    CHECK(labels({1, 1, 3, 24}) == std::vector<std::string>{"1", "3", "24"});
    CHECK(labels({1, 100, 101, 102}) == std::vector<std::string>{"1", "100"});
    CHECK(labels({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) == std::vector<std::string>{"1", "2", "5", "10"});
}

TEST_CASE("a crossover is drawn in a band from its low to its high end") {
    Chart chart = latency_chart(example("resnet18"));
    REQUIRE(chart.marks.size() == 1);
    CHECK(chart.marks[0].low == 4);
    CHECK(chart.marks[0].high == 6);
    std::smatch match;
    const std::string svg = to_svg(chart);
    REQUIRE(std::regex_search(svg, match, std::regex("class=\"band mark\" d=\"M([0-9.]+) [0-9.]+H([0-9.]+)V")));
    std::smatch line;
    REQUIRE(std::regex_search(svg, line, std::regex("class=\"mark\" d=\"M([0-9.]+) ")));
    CHECK(std::stod(match[1]) < std::stod(line[1]));
    CHECK(std::stod(line[1]) < std::stod(match[2]));
}

TEST_CASE("a mark outside of the axis is not drawn") {
    Chart chart = latency_chart(example("resnet18"));
    for (const double x : {0.01, 0.5, 40.0, 1e4}) {
        chart.marks[0].x = x;
        CHECK_MESSAGE(to_svg(chart).find("class=\"mark\"") == std::string::npos, x);
    }
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

TEST_CASE("a square chart has the same range on both axes, and indistinguishable dots are drawn once") {
    Chart chart{.title = "dots", .x_label = "x", .y_label = "y", .square = true};
    chart.series.push_back(
        {.label = "many", .look = SeriesLook::scatter, .points = {{1, 1}, {1.0001, 1}, {100, 20}}, .category = 1});
    const std::string figure = to_figure(chart, "");
    const std::size_t dots = figure.find("class=\"crowd k1\"");
    REQUIRE(dots != std::string::npos);
    const std::string path = figure.substr(dots, figure.find("/>", dots) - dots);
    CHECK(std::count(path.begin(), path.end(), 'M') == 2);
    CHECK(std::count(path.begin(), path.end(), 'h') == 2);
    for (const char* tick : {">100<", ">1<"}) {
        const std::size_t first = figure.find(tick);
        REQUIRE(first != std::string::npos);
        CHECK(figure.find(tick, first + 1) != std::string::npos);  // on the other axis too
    }
}

TEST_CASE("a linear chart begins at zero, and charts side by side share the extent that they are given") {
    Chart chart{
        .title = "c", .x_label = "x", .y_label = "y", .series = {{.label = "a", .points = {{2, 1}, {4, 2}, {8, 4}}}}};
    chart.linear = true;
    const auto xs = [](const std::string& figure) {
        std::vector<double> found;
        const std::regex dot("class=\"dot prediction\" d=\"M([0-9.]+) ");
        for (auto at = std::sregex_iterator(figure.begin(), figure.end(), dot); at != std::sregex_iterator(); ++at)
            found.push_back(std::stod((*at)[1]));
        return found;
    };
    const std::string figure = to_figure(chart, "");
    CHECK(figure.find(">0<") != std::string::npos);
    const std::vector<double> alone = xs(figure);
    REQUIRE(alone.size() == 3);
    CHECK(alone[2] - alone[1] == approx(2 * (alone[1] - alone[0])).epsilon(0.01));
    chart.extent = {{16, 4}};
    const std::vector<double> wider = xs(to_figure(chart, ""));
    CHECK(wider[2] - wider[0] == approx((alone[2] - alone[0]) / 2).epsilon(0.01));
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
