#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ftax::report {

struct ChartPoint {
    double x = 0, y = 0;
    double radius = 0;  ///< radius of its dot; 0: that of the series
    /// Tooltip of the dot; empty: the numbers on a line, nothing in a scatter.
    std::string note{};
    double low = 0, high = 0;  ///< interval; with many lines a page shows only that of the selected one; 0: none
};

/// Style of a series. Each look has one colour per theme; lines and scatters have one per category.
enum class SeriesLook {
    prediction,
    host,
    device,
    measured,
    reference,  ///< a thin line with its label at its end: a roof, a diagonal
    line,
    scatter,
};

/// Number of categories with a distinct colour and dot, and of dash patterns; the last is for all others.
inline constexpr std::size_t category_count = 8;

struct Series {
    std::string label;
    SeriesLook look = SeriesLook::prediction;
    std::vector<ChartPoint> points;  ///< sorted by x unless a scatter; both coordinates positive
    std::size_t category = 0;        ///< colour and dot of a line or scatter; below category_count
    std::size_t dash = 0;            ///< dash pattern of a line; below category_count
};

/// A vertical line.
struct ChartMark {
    double x = 0;
    double low = 0, high = 0;  ///< the interval around it
    std::string label;
};

/// A chart as plain data; its axes are logarithmic unless `linear`.
struct Chart {
    std::string title, x_label, y_label;
    /// Labels of the x axis, as far as there is room; nullopt: powers of ten and values between them.
    std::optional<std::vector<double>> x_ticks{};
    std::vector<Series> series;
    std::vector<ChartMark> marks{};
    bool square = false;                  ///< both axes have the same range
    bool times = false;                   ///< y, and x of a square, is in milliseconds; ticks have the unit to read
    bool linear = false;                  ///< both axes begin at zero and have equal steps
    std::vector<ChartPoint> extent{};     ///< what the axes also include: charts side by side share theirs
    std::optional<std::size_t> picked{};  ///< the line highlighted on a page until the reader selects another
};

/// Values for the ticks of a logarithmic axis: 1, 2 and 5 times powers of ten inside the range; only the powers if
/// there would be more than `most`; if there are fewer than two, all digits times powers, or equal steps.
[[nodiscard]] std::vector<double> log_ticks(double low, double high, std::size_t most = 9);

/// Sets the x axis to batch sizes, with labels at these if they are few, and sorts the points of each series. No
/// batches: the model fixes its batch.
void label_batches(Chart& chart, std::vector<double> batches);

/// Draws the chart as one SVG document with title and legend that follows the reader's light or dark theme.
[[nodiscard]] std::string to_svg(const Chart& chart);

/// The legend of a chart as a list; a page has it next to the plot.
[[nodiscard]] std::string legend_of(const Chart& chart);

/// Draws the chart for a page that has the title and chart_style(); the legend is text next to it.
[[nodiscard]] std::string to_figure(const Chart& chart, std::string_view caption_markup);

/// Colours and strokes of all charts, as CSS.
[[nodiscard]] std::string chart_style();

}  // namespace ftax::report
