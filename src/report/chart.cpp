#include "src/report/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "graphs/base/embedded.hpp"
#include "graphs/base/excerpt.hpp"
#include "src/report/page.hpp"
#include "src/report/table.hpp"

namespace ftax::report {
namespace {

/// The colours of inks.tsv (name, on light ground, on dark ground) are after Okabe and Ito (2008), which colour-blind
/// readers tell apart. Colours are literal, since SVG-to-PDF converters do not support CSS variables.
std::string colours(std::size_t column) {
    std::string css;
    for (const std::string_view ink : words_of(embedded_text("src/report/assets/inks.tsv"), '\n')) {
        const std::vector<std::string_view> words = words_of(ink, '\t');
        css += fmt::format(".ftax-chart .{}{{color:{}}}", words[0], words[column]);
    }
    return css;
}

/// On one line, as an SVG file holds it.
std::string strokes() {
    std::string css(embedded_text("src/report/assets/chart.css"));
    std::erase(css, '\n');
    return css;
}

/// Size of the canvas and the margins around the axes, in SVG units.
struct Frame {
    double width, height, left, right, top, bottom;
};

constexpr Frame single{.width = 720, .height = 440, .left = 72, .right = 24, .top = 84, .bottom = 56};
/// Smaller: a page scales it to its width and enlarges the letters where that is narrow.
constexpr Frame figure{.width = 640, .height = 400, .left = 92, .right = 16, .top = 28, .bottom = 60};

/// Range of one axis, and where it lies on paper.
struct Axis {
    double low = std::numeric_limits<double>::max(), high = 0;
    double from = 0, to = 0;
    bool linear = false;

    void include(double value) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
    void widen(double factor) {
        low /= factor;
        high *= factor;
    }
    [[nodiscard]] double at(double value) const {
        return from + (to - from) * (linear ? value / high : std::log(value / low) / std::log(high / low));
    }
};

struct Axes {
    Frame frame;
    Axis x{.from = frame.left, .to = frame.width - frame.right};
    Axis y{.from = frame.height - frame.bottom, .to = frame.top};
};

Axes axes_of(const Chart& chart, const Frame& frame) {
    Axes axes{.frame = frame};
    const auto include = [&](const std::vector<ChartPoint>& points) {
        for (const ChartPoint& point : points) {
            axes.x.include(point.x);
            axes.y.include(point.y);
            if (point.low <= 0) continue;
            axes.y.include(point.low);
            axes.y.include(point.high);
        }
    };
    for (const Series& series : chart.series) include(series.points);
    include(chart.extent);
    if (chart.square) {
        axes.x.include(axes.y.low);
        axes.x.include(axes.y.high);
        std::tie(axes.y.low, axes.y.high) = std::pair(axes.x.low, axes.x.high);
    }
    axes.x.widen(chart.linear ? 1 : 1.15);
    axes.y.widen(chart.square ? 1.15 : 1.25);
    axes.x.linear = axes.y.linear = chart.linear;
    if (chart.linear) axes.x.low = axes.y.low = 0;
    return axes;
}

constexpr double alone = 12;  ///< half the width of what has one point only: it has no length, but must be seen

std::string path(const Axes& axes, const std::vector<ChartPoint>& points) {
    if (points.size() == 1)
        return fmt::format("M{:.1f} {:.1f}h{}", axes.x.at(points[0].x) - alone, axes.y.at(points[0].y), 2 * alone);
    std::string text;
    for (const ChartPoint& point : points)
        text += fmt::format("{}{:.1f} {:.1f}", text.empty() ? "M" : "L", axes.x.at(point.x), axes.y.at(point.y));
    return text;
}

std::string band(const Axes& axes, std::vector<ChartPoint> points) {
    std::vector<ChartPoint> high = points;
    for (ChartPoint& point : high) point.y = point.high;
    for (ChartPoint& point : points) point.y = point.low;
    if (points.size() == 1) return fmt::format("{}V{:.1f}h{}Z", path(axes, high), axes.y.at(points[0].y), -2 * alone);
    high.insert(high.end(), points.rbegin(), points.rend());
    return path(axes, high) + "Z";
}

/// "0.5", "200", "20k", "5T".
std::string tick_text(double value) {
    static constexpr std::array<std::string_view, 6> prefixes{"k", "M", "G", "T", "P", "E"};
    if (value < 1e4) return fmt::format("{:g}", value);
    const auto step = std::min(static_cast<std::size_t>(std::log10(value * 1.0001) / 3), prefixes.size());
    return fmt::format("{:g}{}", value / std::pow(1000.0, step), prefixes[step - 1]);
}

/// "20 µs", "500 ms", "2 s" for milliseconds.
std::string time_text(double ms) {
    if (ms < 1) return fmt::format("{:g} µs", 1e3 * ms);
    return ms < 1e3 ? fmt::format("{:g} ms", ms) : tick_text(1e-3 * ms) + " s";
}

/// One, two or five times a power of ten apart.
std::vector<double> equal_ticks(double low, double high) {
    double step = std::pow(10.0, std::floor(std::log10(high - low)));
    if ((high - low) / step < 2) step /= 5;
    std::vector<double> ticks;
    for (double i = std::ceil(low / step); i * step <= high; ++i) ticks.push_back(i * step);
    return ticks;
}

std::vector<double> ticks_of(const Axis& axis) {
    return axis.linear ? equal_ticks(axis.low, axis.high) : log_ticks(axis.low, axis.high);
}

std::string draw_grid(const Axes& axes, const Chart& chart) {
    const Frame& f = axes.frame;
    const bool x_times = chart.times && chart.square;
    std::string text;
    double last_end = 0;
    for (const double value : chart.x_ticks ? *chart.x_ticks : ticks_of(axes.x)) {
        const double x = axes.x.at(value);
        const std::string label = x_times ? time_text(value) : tick_text(value);
        const double half_width = 6.0 * static_cast<double>(label.size()) + 4;  // letters as wide as on a narrow page
        if (x - half_width < last_end) continue;
        last_end = x + half_width;
        text += fmt::format(
            "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text class=\"label\" x=\"{0:.1f}\" y=\"{3}\" "
            "text-anchor=\"middle\">{4}</text>\n",
            x, f.top, f.height - f.bottom, f.height - f.bottom + 19, label);
    }
    for (const double value : ticks_of(axes.y)) {
        const double y = axes.y.at(value);
        text += fmt::format(
            "<path class=\"grid\" d=\"M{0} {1:.1f}H{2}\"/><text class=\"label\" x=\"{3}\" y=\"{4:.1f}\" "
            "text-anchor=\"end\">{5}</text>\n",
            f.left, y, f.width - f.right, f.left - 8, y + 4, chart.times ? time_text(value) : tick_text(value));
    }
    return text;
}

/// Colour and stroke of a series.
std::string look_class(const Series& series) {
    static constexpr std::array<std::string_view, 5> names{"prediction", "host", "device", "measured", "reference"};
    const auto look = static_cast<std::size_t>(series.look);
    if (look < names.size()) return std::string(names[look]);
    const std::string dash = series.look == SeriesLook::line ? fmt::format(" d{}", series.dash) : "";
    return fmt::format("k{}{}", series.category, dash);
}

/// The outline of a dot; each category has a shape of its own, for print and for those who see few colours.
std::string dot(std::size_t category, double x, double y, double r) {
    const double side = 0.85 * r, tall = 1.15 * r;
    if (category == 1)
        return fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h-{:.1f}z", x - side, y - side, 2 * side, 2 * side, 2 * side);
    if (category == 2)
        return fmt::format("M{:.1f} {:.1f}l{:.1f} {:.1f}h-{:.1f}z", x, y - tall, tall, 2 * side, 2 * tall);
    if (category == 3)
        return fmt::format("M{0:.1f} {1:.1f}l{2:.1f} {2:.1f} -{2:.1f} {2:.1f} -{2:.1f} -{2:.1f}z", x, y - tall, tall);
    if (category == 4)
        return fmt::format("M{:.1f} {:.1f}l{:.1f} -{:.1f}h-{:.1f}z", x, y + tall, tall, 2 * side, 2 * tall);
    return fmt::format("M{0:.1f} {1:.1f}a{2:.1f} {2:.1f} 0 1 0 {3:.1f} 0a{2:.1f} {2:.1f} 0 1 0 -{3:.1f} 0z", x - r, y,
                       r, 2 * r);
}

constexpr double scatter_radius = 2.6;

/// Draws dots with notes individually, and the others, possibly very many, as one path with a dot a pixel, or two.
std::string draw_scatter(const Axes& axes, const Series& series) {
    const std::string look = look_class(series);
    std::string text, cloud;
    std::set<std::pair<double, double>> taken;
    const double grain = series.points.size() > 5000 ? 2 : 1;  // in pixels
    for (const ChartPoint& point : series.points) {
        const double x = axes.x.at(point.x), y = axes.y.at(point.y);
        if (!point.note.empty()) {
            text += fmt::format("<path class=\"dot cloud {}\" d=\"{}\"><title>{}</title></path>\n", look,
                                dot(series.category, x, y, point.radius > 0 ? point.radius : scatter_radius),
                                escape_markup(point.note));
        } else if (taken.emplace(std::round(x / grain), std::round(y / grain)).second) {
            cloud += fmt::format("M{:.0f} {:.0f}h0", x, y);  // with round ends
        }
    }
    if (!cloud.empty()) text += fmt::format("<path class=\"crowd {}\" d=\"{}\"/>\n", look, cloud);
    return text;
}

std::string draw_series(const Axes& axes, const Series& series) {
    if (series.look == SeriesLook::scatter) return draw_scatter(axes, series);
    const std::string look = look_class(series);
    std::string text;
    if (series.look != SeriesLook::measured)
        text = fmt::format("<path class=\"line {}\" d=\"{}\"/>\n", look, path(axes, series.points));
    static constexpr std::array bare{SeriesLook::host, SeriesLook::device, SeriesLook::reference};
    if (std::find(bare.begin(), bare.end(), series.look) != bare.end()) return text;
    const bool measured = series.look == SeriesLook::measured;
    constexpr std::size_t crowd = 100;  // whose dots would hide the line
    if (series.points.size() > crowd) return text;
    const double radius = measured ? 5 : 3;
    for (const ChartPoint& point : series.points) {
        const std::string note =
            point.note.empty() ? fmt::format("{}: {:g}, {}", series.label, point.x, significant(point.y)) : point.note;
        const double x = axes.x.at(point.x), y = axes.y.at(point.y);
        text += fmt::format("<path class=\"{} {}\" d=\"{}\"><title>{}</title></path>\n", measured ? "ring" : "dot",
                            look, dot(series.category, x, y, radius), escape_markup(note));
    }
    return text;
}

/// Draws the legend symbol of a series: 26 wide, centred at `y`.
std::string draw_sample(const Series& series, double x, double y) {
    const std::string look = look_class(series);
    if (series.look == SeriesLook::measured)
        return fmt::format("<circle class=\"ring measured\" cx=\"{:.1f}\" cy=\"{}\" r=\"5\"/>", x + 13, y);
    if (series.look == SeriesLook::scatter)
        return fmt::format("<path class=\"dot {}\" d=\"{}\"/>", look, dot(series.category, x + 13, y, 5));
    std::string line = fmt::format("<path class=\"line {}\" d=\"M{:.1f} {}h26\"/>", look, x, y);
    if (series.look != SeriesLook::line) return line;
    return line + fmt::format("<path class=\"dot {}\" d=\"{}\"/>", look, dot(series.category, x + 13, y, 3.5));
}

std::string draw_legend(const Chart& chart, double left) {
    std::string text;
    double x = left;
    for (const Series& series : chart.series) {
        if (series.look == SeriesLook::reference) continue;
        text += draw_sample(series, x, 56) + fmt::format("<text class=\"legend\" x=\"{:.1f}\" y=\"60\">{}</text>\n",
                                                         x + 33, escape_markup(series.label));
        x += 60 + 7.2 * static_cast<double>(series.label.size());
    }
    return text;
}

std::string draw_marks(const Chart& chart, const Axes& axes) {
    const double top = axes.frame.top, foot = axes.frame.height - axes.frame.bottom;
    constexpr double line_height = 18;
    double label_y = top + 16;
    std::string text;
    for (const ChartMark& mark : chart.marks) {
        if (mark.x <= axes.x.low || mark.x >= axes.x.high) continue;
        const double from = axes.x.at(std::max(mark.low, axes.x.low));
        const double to = axes.x.at(std::min(mark.high, axes.x.high));
        const double x = axes.x.at(mark.x);
        const bool at_right = x > axes.frame.width / 2;
        text += fmt::format(
            "<path class=\"band mark\" d=\"M{0:.1f} {1}H{2:.1f}V{3}H{0:.1f}z\"/>\n<path class=\"mark\" d=\"M{4:.1f} "
            "{1}V{3}\"/><text class=\"label\" x=\"{5:.1f}\" y=\"{6}\" text-anchor=\"{7}\">{8}</text>\n",
            from, top, to, foot, x, at_right ? x - 6 : x + 6, label_y, at_right ? "end" : "start",
            escape_markup(mark.label));
        label_y += line_height;
    }
    return text;
}

/// Labels each reference above its end, or below it if the previous label overlaps.
std::string draw_reference_names(const Chart& chart, const Axes& axes) {
    constexpr double line_height = 24;  // for the larger letters on a narrow page
    std::vector<const Series*> references;
    for (const Series& series : chart.series)
        if (series.look == SeriesLook::reference) references.push_back(&series);
    std::ranges::stable_sort(references, std::greater<>(), [](const Series* s) { return s->points.back().y; });
    std::string text;
    double last_y = -line_height;
    for (const Series* series : references) {
        const ChartPoint& end = series->points.back();
        const double line_y = axes.y.at(end.y);
        const double y = line_y - 6 >= last_y + line_height ? line_y - 6 : std::max(line_y + 18, last_y + line_height);
        text += fmt::format("<text class=\"reference\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                            axes.x.at(end.x), y, escape_markup(series->label));
        last_y = y;
    }
    return text;
}

std::string_view on(const Chart& chart, std::size_t series) {
    return chart.picked == series ? " class=\"on\"" : "";
}

/// All but title and legend.
std::string draw_plot(const Chart& chart, const Frame& f) {
    const Axes axes = axes_of(chart, f);
    std::string svg = draw_grid(axes, chart);
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
        const Series& series = chart.series[i];
        if (series.points.empty() || series.points.front().low <= 0) continue;
        const bool one_of_many = series.look == SeriesLook::line;
        svg += fmt::format("<path class=\"band{} {}\"{} d=\"{}\"/>\n", one_of_many ? " own" : "",
                           look_class(series).substr(0, one_of_many ? 2 : std::string::npos),
                           one_of_many ? fmt::format(" data-series=\"{}\"", i) : "", band(axes, series.points));
    }
    svg += draw_marks(chart, axes) + draw_reference_names(chart, axes);
    for (std::size_t i = 0; i < chart.series.size(); ++i)
        svg += fmt::format("<g{}>\n{}</g>\n",
                           chart.series[i].look == SeriesLook::reference  // which stays when a reader picks a line
                               ? ""
                               : fmt::format(" data-series=\"{}\"{}", i, on(chart, i)),
                           draw_series(axes, chart.series[i]));
    svg += fmt::format("<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                       (f.left + f.width - f.right) / 2, f.height - 12, escape_markup(chart.x_label));
    return svg +
           fmt::format(
               "<text class=\"label\" transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
               f.left / 5, (f.top + f.height - f.bottom) / 2, escape_markup(chart.y_label));
}

}  // namespace

std::vector<double> log_ticks(double low, double high, std::size_t most) {
    std::vector<double> all, powers, digits;
    for (int exponent = static_cast<int>(std::floor(std::log10(low))); std::pow(10.0, exponent) <= high; ++exponent) {
        for (int digit = 1; digit <= 9; ++digit) {
            const double value = digit * std::pow(10.0, exponent);
            if (value < low || value > high) continue;
            digits.push_back(value);
            if (digit == 1 || digit == 2 || digit == 5) all.push_back(value);
            if (digit == 1) powers.push_back(value);
        }
    }
    // The range is too small for a logarithm to matter, or it has no digit of the next power.
    if (all.size() < 2 && high > low && (digits.size() < 2 || high > 1.5 * digits.back()))
        return equal_ticks(low, high);
    if (all.size() < 2) return digits;
    return all.size() > most && powers.size() >= 2 ? powers : all;
}

void label_batches(Chart& chart, std::vector<double> batches) {
    constexpr std::size_t few = 9;
    chart.x_label = batches.empty() ? "batch: the model fixes it" : "batch";
    std::sort(batches.begin(), batches.end());
    batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
    if (batches.size() <= few) chart.x_ticks = std::move(batches);
    for (Series& series : chart.series) std::ranges::stable_sort(series.points, {}, &ChartPoint::x);
}

std::string to_svg(const Chart& chart) {
    const Frame& f = single;
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"ftax-chart\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" style=\"max-width:100%;height:auto\" role=\"img\">\n<title>{2}</title>\n<style>\n{3}</style>\n",
        f.width, f.height, escape_markup(chart.title), chart_style());
    svg += fmt::format(
        "<rect class=\"ground\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n<text class=\"title\" x=\"{}\" "
        "y=\"30\">{}</text>\n",
        f.width, f.height, f.left, escape_markup(chart.title));
    return svg + draw_legend(chart, f.left) + draw_plot(chart, f) + "</svg>\n";
}

std::string legend_of(const Chart& chart) {
    std::string html = "<ul class=\"legend\">";
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
        const Series& series = chart.series[i];
        if (series.look == SeriesLook::reference) continue;
        html += fmt::format(
            "<li data-series=\"{}\"{} tabindex=\"0\"><svg class=\"ftax-chart\" viewBox=\"0 0 26 12\" width=\"26\" "
            "height=\"12\" aria-hidden=\"true\">{}</svg> {}</li>",
            i, on(chart, i), draw_sample(series, 0, 6), escape_markup(series.label));
    }
    return html + "</ul>\n";
}

std::string to_figure(const Chart& chart, std::string_view caption_markup) {
    Frame frame = figure;
    if (chart.times) frame.left += 28;  // for the units
    std::string html = fmt::format("<figure{}>", chart.picked ? " class=\"picked\"" : "") + legend_of(chart);
    html += fmt::format("<svg class=\"ftax-chart plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                        frame.width, frame.height, escape_markup(chart.title));
    html += draw_plot(chart, frame) + "</svg>\n";
    if (!caption_markup.empty()) html += fmt::format("<figcaption>{}</figcaption>\n", caption_markup);
    return html + "</figure>\n";
}

std::string chart_style() {
    const std::string light = colours(1);
    return fmt::format("{}\n{}\n@media (prefers-color-scheme:dark){{{}}}\n@media print{{{}}}\n", strokes(), light,
                       colours(2), light);
}

}  // namespace ftax::report
