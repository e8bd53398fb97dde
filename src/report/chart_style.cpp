#include <fmt/format.h>

#include <array>
#include <string_view>

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

/// Colours stand as they are, not as CSS variables, which programs that turn SVG into PDF do not know.
std::string colours(std::string_view Ink::*theme) {
    std::string css;
    for (const Ink& ink : inks) css += fmt::format(".ftax-chart .{}{{color:{}}}", ink.name, ink.*theme);
    return css;
}

constexpr std::string_view strokes =
    ".ftax-chart{font:13px system-ui,sans-serif}.ftax-chart .title{font-size:15px;font-weight:600}"
    ".ftax-chart text,.ftax-chart .ground,.ftax-chart .dot{fill:currentColor}"
    ".ftax-chart .grid,.ftax-chart .mark,.ftax-chart .line,.ftax-chart .ring{stroke:currentColor;fill:none}"
    ".ftax-chart .mark{stroke-dasharray:2 4}.ftax-chart .band{fill:currentColor;stroke:none;fill-opacity:.16}"
    ".ftax-chart .line{stroke-width:2}.ftax-chart .ring{stroke-width:1.6}.ftax-chart .cloud{fill-opacity:.6}"
    ".ftax-chart .line.reference{stroke-width:1.2}.ftax-chart .line.host,.ftax-chart .line.d1{stroke-dasharray:7 4}"
    ".ftax-chart .line.device,.ftax-chart .line.d2{stroke-dasharray:2 3}.ftax-chart .line.d3{stroke-dasharray:9 3 2 3}"
    ".ftax-chart .line.d4{stroke-dasharray:12 4}.ftax-chart .line.d5{stroke-dasharray:4 2}"
    ".ftax-chart .line.d6{stroke-dasharray:9 3 2 3 2 3}.ftax-chart .line.d7{stroke-dasharray:1 3}";

}  // namespace

std::string chart_style() {
    const std::string light = colours(&Ink::light);
    return fmt::format("{}\n{}\n@media (prefers-color-scheme:dark){{{}}}\n@media print{{{}}}\n", strokes, light,
                       colours(&Ink::dark), light);
}

}  // namespace ftax::report
