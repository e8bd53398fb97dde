#include "src/report/prediction_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "src/report/breakdown.hpp"
#include "src/report/latency_chart.hpp"
#include "src/report/launch_report.hpp"
#include "src/report/markup.hpp"
#include "src/report/page.hpp"
#include "src/report/prediction_sections.hpp"
#include "src/report/roofline.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

std::string roofline_section(const DeviceSpec& device, const Graph& graph, const Explanation& explanation,
                             std::string_view of, std::string_view at) {
    constexpr std::size_t shown = 25;
    const std::vector<RooflineKernel> kernels = roofline_kernels(device, graph, explanation);
    if (kernels.empty()) return "";
    double device_s = 0;
    for (const RooflineKernel& kernel : kernels) device_s += kernel.launches * kernel.seconds;
    using Kernel = RooflineKernel;
    const Columns<Kernel> columns{
        {"", "kernel", Unit::text, &Kernel::name},
        {"", "operator", Unit::text, &Kernel::op},
        {"", "units", Unit::text, &Kernel::path},
        {"", "launches", Unit::plain, &Kernel::launches},
        {"", "each", Unit::duration, &Kernel::seconds},
        {"", "of device time", Unit::share, [&](const Kernel& k) { return k.launches * k.seconds / device_s; }},
        {"", "FLOP per byte", Unit::significant, &Kernel::intensity},
        {"", "FLOP/s", Unit::amount, &Kernel::flops_per_s},
        {"", "bytes/s", Unit::amount, [](const Kernel& k) { return k.bytes / k.seconds; }},
        {"", "of the roof", Unit::plain,
         [](const Kernel& k) {
             if (k.roof_flops_per_s <= 0) return Value();
             return Value(k.of_roof(), fmt::format("{:.0f} %", 100 * k.of_roof()));
         }},
        {"", "bound", Unit::text, &Kernel::bound}};
    const std::string caption = fmt::format(
        "Dots: kernels{}, as large as their share of the device time. Lines: what the datasheet allows, {} of memory "
        "and the peak of the units in use; a kernel above the slope finds its operands in the L2 cache. Each operand "
        "counts once, and so does one operation per element where nothing is multiplied.",
        at, quantity(device.memory_bandwidth_bytes_per_s, "B/s"));
    return section(
        "Roofline",
        to_figure(roofline_chart(kernels, device, fmt::format("Roofline of {}", of)), escape_markup(caption)) +
            (kernels.size() > shown ? fmt::format("<p>The {} of {} groups of equal kernels that take most time:</p>\n",
                                                  shown, kernels.size())
                                    : "") +
            columns.select(std::span(kernels).first(std::min(shown, kernels.size()))).page_table("kernels"));
}

std::string launches_section(const Graph& graph, const std::vector<OpPrediction>& launches, std::string_view at) {
    const Grid table = launch_columns(graph).select(
        launches, "=operator =source =module =host_kind =kernels =host_s =device_s =bound");
    return section(fmt::format("Launches{}", at),
                   folded(fmt::format("All {}, one by one", launches.size()), table.page_table("launches")));
}

}  // namespace

std::string prediction_page(const PredictionReport& report, const Graph& graph, const Explanation& last) {
    const Chart chart = latency_chart(report);
    const auto batch = report.rows.back().batch;
    const std::string at = batch ? fmt::format(" at batch {}", *batch) : "";
    std::string html = facts_line(report) + to_figure(chart, "") + rests_on_section(report, graph);
    if (report.crossover) html += crossover_paragraph(*report.crossover);
    if (report.anchors)
        html += fmt::format("<p id=\"anchors\">{}</p>\n", escape_markup(print_anchors(*report.anchors)));
    html += predictions_section(report) +
            (report.rows.back().memory ? memory_section(*report.rows.back().memory) : "") +
            roofline_section(report.device.device, graph, last, chart.title, at) +
            breakdown_section("operator kind", "kinds", breakdown(graph, last.launches, kind_of)) +
            breakdown_section("module", "modules", breakdown(graph, last.launches, stage_of)) +
            launches_section(graph, last.launches, at) + provenance_section(report);
    return page(chart.title, html);
}

}  // namespace ftax::report
