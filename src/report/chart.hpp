#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ftax::report {

struct ChartPoint {
    double x = 0, y = 0;
    double radius = 0;  ///< of its dot; 0 for that of its series
    /// What a pointer over the dot shows; empty for the numbers of a line, for nothing in a scatter.
    std::string note{};
    double low = 0, high = 0;  ///< the interval; of many lines a page shows that of the one that is picked; 0: none
};

/// How a series is drawn. Each look has one colour per theme; lines and scatters have one per category.
enum class SeriesLook {
    prediction,
    host,
    device,
    measured,
    reference,  ///< a thin line with its label at its end: a roof, a diagonal
    line,
    scatter,
};

/// Categories that have a colour and a dot of their own, and as many dashes; the last is for whatever is left.
inline constexpr std::size_t category_count = 8;

struct Series {
    std::string label;
    SeriesLook look = SeriesLook::prediction;
    std::vector<ChartPoint> points;  ///< sorted by x unless a scatter; both coordinates positive
    std::size_t category = 0;        ///< colour and dot of a line or scatter; below category_count
    std::size_t dash = 0;            ///< of a line; below category_count
};

/// A vertical line.
struct ChartMark {
    double x = 0;
    double low = 0, high = 0;  ///< the interval around it
    std::string label;
};

/// A chart with logarithmic axes, as plain data.
struct Chart {
    std::string title, x_label, y_label;
    /// Where the x axis is labelled, as far as there is room; nullopt: at powers of ten and what lies between them.
    std::optional<std::vector<double>> x_ticks{};
    std::vector<Series> series;
    std::vector<ChartMark> marks{};
    bool square = false;                  ///< both axes have the same range
    std::optional<std::size_t> picked{};  ///< the line that stands out on a page until a reader picks another
};

/// Values for the ticks of a logarithmic axis: 1, 2 and 5 times powers of ten inside the range; thinned to the powers
/// when there would be more than `most`; where they are less than two, all digits times powers, or equal steps.
[[nodiscard]] std::vector<double> log_ticks(double low, double high, std::size_t most = 9);

/// Makes the x axis one of batch sizes: labelled at these where they are few. None: the model fixes its batch.
void label_batches(Chart& chart, std::vector<double> batches);

/// Draws the chart as one SVG document with title and legend that follows the reader's light or dark theme.
/// The chart must hold at least one point.
[[nodiscard]] std::string to_svg(const Chart& chart);

/// Draws the chart for a page, which says the title itself and carries chart_style(): the legend is text beside it.
[[nodiscard]] std::string to_figure(const Chart& chart, std::string_view caption_markup);

/// Colours and strokes of all charts, as CSS.
[[nodiscard]] std::string chart_style();

}  // namespace ftax::report
