#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "src/core/embedded.hpp"
#include "src/report/chart.hpp"

namespace ftax::report {
namespace {

struct Ink {
    std::string_view name, light, dark;
};

/// After Okabe and Ito (2008), whose colours colour-blind readers tell apart; darker for light ground, lighter for
/// dark.
constexpr std::array inks{
    Ink{"title", "#1c2430", "#e8ecf1"},      Ink{"legend", "#1c2430", "#e8ecf1"},
    Ink{"label", "#4a5462", "#b4bdc9"},      Ink{"grid", "#e3e7ec", "#333c48"},
    Ink{"mark", "#5b6675", "#a3adba"},       Ink{"ground", "#ffffff", "#151a21"},
    Ink{"prediction", "#0072b2", "#56b4e9"}, Ink{"host", "#b45f00", "#e69f00"},
    Ink{"device", "#00795a", "#2fc79a"},     Ink{"measured", "#1c2430", "#e8ecf1"},
    Ink{"reference", "#4a5462", "#b4bdc9"},  Ink{"k0", "#0072b2", "#56b4e9"},
    Ink{"k1", "#c44e00", "#ff9248"},         Ink{"k2", "#00795a", "#2fc79a"},
    Ink{"k3", "#a8327a", "#f08cc8"},         Ink{"k4", "#8a6a00", "#e6c229"},
    Ink{"k5", "#6a4fc3", "#b9a6ff"},         Ink{"k6", "#8c4a2b", "#d9a07c"},
    Ink{"k7", "#6b7280", "#9aa3ae"},
};

/// Colours are literal, since SVG-to-PDF converters do not support CSS variables.
std::string colours(std::string_view Ink::*theme) {
    std::string css;
    for (const Ink& ink : inks) css += fmt::format(".ftax-chart .{}{{color:{}}}", ink.name, ink.*theme);
    return css;
}

/// On one line, as an SVG file holds it.
std::string strokes() {
    std::string css(embedded_text("src/report/assets/chart.css"));
    std::erase(css, '\n');
    return css;
}

}  // namespace

std::string chart_style() {
    const std::string light = colours(&Ink::light);
    return fmt::format("{}\n{}\n@media (prefers-color-scheme:dark){{{}}}\n@media print{{{}}}\n", strokes(), light,
                       colours(&Ink::dark), light);
}

}  // namespace ftax::report
