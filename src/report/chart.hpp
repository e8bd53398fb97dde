#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ftax::report {

struct ChartPoint {
    double x = 0, y = 0;
};

/// How a series is drawn; each look has one colour per theme.
enum class SeriesLook { prediction, host, device, measured };

struct Series {
    std::string label;
    SeriesLook look = SeriesLook::prediction;
    std::vector<ChartPoint> points;  ///< sorted by x; both coordinates positive
};

/// A chart with logarithmic axes, as plain data.
struct Chart {
    std::string title, x_label, y_label;
    std::vector<Series> series;
    std::vector<ChartPoint> band_low, band_high;  ///< edges of the interval, at the same x; empty for none
    std::optional<double> mark_x;                 ///< a vertical line
    std::string mark_label;
};

/// Values for the ticks of a logarithmic axis: 1, 2 and 5 times powers of ten inside the range, thinned to the powers
/// when there would be more than `most`.
[[nodiscard]] std::vector<double> log_ticks(double low, double high, std::size_t most = 9);

/// Makes text safe inside HTML and SVG; control characters become visible escapes.
[[nodiscard]] std::string escape_markup(std::string_view text);

/// Draws the chart as one SVG document that follows the reader's light or dark theme.
/// The chart must hold at least one point.
[[nodiscard]] std::string to_svg(const Chart& chart);

}  // namespace ftax::report
