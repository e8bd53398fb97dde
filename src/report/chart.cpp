#include "src/report/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "src/io/escape.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

constexpr double width = 720, height = 440;
constexpr double left = 72, right = 24, top = 84, bottom = 56;

/// Colours of Okabe and Ito (2008), which colour-blind readers tell apart, and lighter ones on dark ground.
constexpr std::string_view style = R"(<style>
.ftax-chart{font:13px system-ui,sans-serif;--ink:#1c2430;--quiet:#5b6675;--grid:#e3e7ec;--ground:#fff;--prediction:#0072b2;--host:#b45f00;--device:#00795a;--measured:#1c2430}
@media (prefers-color-scheme:dark){.ftax-chart{--ink:#e8ecf1;--quiet:#a3adba;--grid:#333c48;--ground:#151a21;--prediction:#56b4e9;--host:#e69f00;--device:#2fc79a;--measured:#e8ecf1}}
@media print{.ftax-chart{--ink:#1c2430;--quiet:#5b6675;--grid:#e3e7ec;--ground:#fff;--prediction:#0072b2;--host:#b45f00;--device:#00795a;--measured:#1c2430}}
.ftax-chart .ground{fill:var(--ground)}.ftax-chart text{fill:var(--quiet)}.ftax-chart .title{fill:var(--ink);font-size:15px;font-weight:600}
.ftax-chart .legend{fill:var(--ink)}.ftax-chart .grid{stroke:var(--grid)}.ftax-chart .mark{stroke:var(--quiet);stroke-dasharray:2 4}
.ftax-chart .band{fill:var(--prediction);opacity:.16}.ftax-chart .line{fill:none;stroke-width:2}
.ftax-chart .prediction{stroke:var(--prediction)}.ftax-chart .host{stroke:var(--host);stroke-dasharray:7 4}.ftax-chart .device{stroke:var(--device);stroke-dasharray:2 3}
.ftax-chart .measured{stroke:var(--measured);fill:none;stroke-width:1.6}
</style>
)";

constexpr std::array<std::string_view, 4> look_classes{"prediction", "host", "device", "measured"};

/// Range of one axis in logarithms, and where it lies on paper.
struct Axis {
    double low = std::numeric_limits<double>::max(), high = 0;
    double from = 0, to = 0;

    void include(double value) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
    void widen(double factor) {
        low /= factor;
        high *= factor;
    }
    [[nodiscard]] double at(double value) const {
        return from + (to - from) * std::log(value / low) / std::log(high / low);
    }
};

struct Axes {
    Axis x{.from = left, .to = width - right};
    Axis y{.from = height - bottom, .to = top};
};

Axes axes_of(const Chart& chart) {
    Axes axes;
    const auto include = [&](const std::vector<ChartPoint>& points) {
        for (const ChartPoint& point : points) {
            axes.x.include(point.x);
            axes.y.include(point.y);
        }
    };
    for (const Series& series : chart.series) include(series.points);
    include(chart.band_low);
    include(chart.band_high);
    axes.x.widen(1.15);
    axes.y.widen(1.25);
    return axes;
}

std::string path(const Axes& axes, const std::vector<ChartPoint>& points) {
    std::string text;
    for (const ChartPoint& point : points) {
        text += fmt::format("{}{:.1f} {:.1f}", text.empty() ? "M" : "L", axes.x.at(point.x), axes.y.at(point.y));
    }
    return text;
}

std::string draw_grid(const Axes& axes) {
    std::string text;
    for (const double value : log_ticks(axes.x.low, axes.x.high)) {
        const double x = axes.x.at(value);
        text += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" "
                            "text-anchor=\"middle\">{4:g}</text>\n",
                            x, top, height - bottom, height - bottom + 19, value);
    }
    for (const double value : log_ticks(axes.y.low, axes.y.high)) {
        const double y = axes.y.at(value);
        text += fmt::format("<path class=\"grid\" d=\"M{0} {1:.1f}H{2}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
                            "text-anchor=\"end\">{5:g}</text>\n",
                            left, y, width - right, left - 8, y + 4, value);
    }
    return text;
}

std::string draw_series(const Axes& axes, const Series& series) {
    const std::string_view look = look_classes[static_cast<std::size_t>(series.look)];
    std::string text;
    if (series.look != SeriesLook::measured) {
        text = fmt::format("<path class=\"line {}\" d=\"{}\"/>\n", look, path(axes, series.points));
    }
    if (series.look == SeriesLook::host || series.look == SeriesLook::device) return text;
    for (const ChartPoint& point : series.points) {
        text += fmt::format("<circle class=\"{0}\" cx=\"{1:.1f}\" cy=\"{2:.1f}\" r=\"{3}\" fill=\"none\"><title>{4}: "
                            "{5:g}, {6}</title></circle>\n",
                            look, axes.x.at(point.x), axes.y.at(point.y), series.look == SeriesLook::measured ? 5 : 2,
                            escape_markup(series.label), point.x, significant(point.y));
    }
    return text;
}

std::string draw_legend(const Chart& chart) {
    std::string text;
    double x = left;
    for (const Series& series : chart.series) {
        const std::string_view look = look_classes[static_cast<std::size_t>(series.look)];
        text += series.look == SeriesLook::measured
                    ? fmt::format("<circle class=\"measured\" cx=\"{:.1f}\" cy=\"56\" r=\"5\"/>", x + 13)
                    : fmt::format("<path class=\"line {}\" d=\"M{:.1f} 56h26\"/>", look, x);
        text += fmt::format("<text class=\"legend\" x=\"{:.1f}\" y=\"60\">{}</text>\n", x + 33, escape_markup(series.label));
        x += 60 + 7.2 * static_cast<double>(series.label.size());
    }
    return text;
}

}  // namespace

std::vector<double> log_ticks(double low, double high, std::size_t most) {
    std::vector<double> all, powers;
    for (int exponent = static_cast<int>(std::floor(std::log10(low))); std::pow(10.0, exponent) <= high; ++exponent) {
        for (const double digit : {1.0, 2.0, 5.0}) {
            const double value = digit * std::pow(10.0, exponent);
            if (value < low || value > high) continue;
            all.push_back(value);
            if (digit == 1) powers.push_back(value);
        }
    }
    return all.size() > most && powers.size() >= 2 ? powers : all;
}

std::string escape_markup(std::string_view text) {
    std::string result;
    for (const char c : escape_terminal(text)) {
        switch (c) {
            case '<': result += "&lt;"; break;
            case '>': result += "&gt;"; break;
            case '&': result += "&amp;"; break;
            case '"': result += "&quot;"; break;
            case '\'': result += "&#39;"; break;
            default: result += c;
        }
    }
    return result;
}

std::string to_svg(const Chart& chart) {
    const Axes axes = axes_of(chart);
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ftax-chart\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" style=\"max-width:100%;height:auto\" role=\"img\">\n<title>{2}</title>\n",
        width, height, escape_markup(chart.title));
    svg += style;
    svg += fmt::format("<rect class=\"ground\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n<text class=\"title\" x=\"{}\" "
                       "y=\"30\">{}</text>\n",
                       width, height, left, escape_markup(chart.title));
    svg += draw_legend(chart) + draw_grid(axes);
    if (!chart.band_low.empty()) {
        std::vector<ChartPoint> outline = chart.band_high;
        outline.insert(outline.end(), chart.band_low.rbegin(), chart.band_low.rend());
        svg += fmt::format("<path class=\"band\" d=\"{}Z\"/>\n", path(axes, outline));
    }
    if (chart.mark_x && *chart.mark_x > axes.x.low && *chart.mark_x < axes.x.high) {
        const double x = axes.x.at(*chart.mark_x);
        const bool at_right = x > width / 2;
        svg += fmt::format("<path class=\"mark\" d=\"M{0:.1f} {1}V{2}\"/><text x=\"{3:.1f}\" y=\"{4}\" "
                           "text-anchor=\"{5}\">{6}</text>\n",
                           x, top, height - bottom, at_right ? x - 6 : x + 6, top + 14, at_right ? "end" : "start",
                           escape_markup(chart.mark_label));
    }
    for (const Series& series : chart.series) svg += draw_series(axes, series);
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (left + width - right) / 2,
                       height - 12, escape_markup(chart.x_label));
    svg += fmt::format("<text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n</svg>\n",
                       (top + height - bottom) / 2, escape_markup(chart.y_label));
    return svg;
}

}  // namespace ftax::report
