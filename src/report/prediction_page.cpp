#include "src/report/prediction_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "src/report/breakdown.hpp"
#include "src/report/latency_chart.hpp"
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
    PageTable table("kernels", {{"kernel", "", CellKind::text},
                                {"operator", "", CellKind::text},
                                {"units", "", CellKind::text},
                                {"launches"},
                                {"each"},
                                {"of device time"},
                                {"FLOP per byte"},
                                {"FLOP/s"},
                                {"bytes/s"},
                                {"of the roof"},
                                {"bound", "", CellKind::text}});
    for (std::size_t i = 0; i < std::min(shown, kernels.size()); ++i) {
        const RooflineKernel& kernel = kernels[i];
        table.row();
        table.text(kernel.name);
        table.text(kernel.op);
        table.text(kernel.path);
        table.number(kernel.launches, std::to_string(kernel.launches));
        table.number(kernel.seconds, duration(kernel.seconds));
        const double share = kernel.launches * kernel.seconds / device_s;
        table.number(share, percent(share));
        table.number(kernel.intensity(), significant(kernel.intensity()));
        table.number(kernel.flops_per_s(), count(kernel.flops_per_s()));
        table.number(kernel.bytes / kernel.seconds, count(kernel.bytes / kernel.seconds));
        if (kernel.roof_flops_per_s > 0) {
            table.number(kernel.of_roof(), fmt::format("{:.0f} %", 100 * kernel.of_roof()));
        } else {
            table.empty();
        }
        table.text(name_of(kernel.bound));
    }
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
            table.html());
}

std::string launches_section(const Graph& graph, const std::vector<OpPrediction>& launches, std::string_view at) {
    PageTable table("launches", {{"operator", "", CellKind::text},
                                 {"source", "", CellKind::text},
                                 {"module", "", CellKind::text},
                                 {"host cost", "", CellKind::text},
                                 {"kernels"},
                                 {"host"},
                                 {"device"},
                                 {"bound", "", CellKind::text}});
    for (const OpPrediction& launch : launches) {
        const Op* op = launch.op == no_op ? nullptr : &graph.ops[launch.op];
        table.row();
        table.text(op ? std::string_view(op->name) : name_of(launch.host_kind));
        table.text(op ? op->source : "");
        table.text(op ? op->module : "");
        table.text(name_of(launch.host_kind));
        table.number(launch.kernels, std::to_string(launch.kernels));
        table.number(launch.host_s, duration(launch.host_s));
        table.number(launch.device_s, duration(launch.device_s));
        table.text(name_of(launch.bound));
    }
    return section(fmt::format("Launches{}", at),
                   folded(fmt::format("All {}, one by one", launches.size()), table.html()));
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
