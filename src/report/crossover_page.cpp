#include "src/report/crossover_page.hpp"

#include <fmt/format.h>

#include "src/report/latency_chart.hpp"
#include "src/report/page.hpp"
#include "src/report/prediction_sections.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

std::string causes_section(const std::vector<Crossover>& crossovers) {
    PageTable table("causes", {{"at batch"},
                               {"kind", "kind", CellKind::text},
                               {"operations", "operations"},
                               {"host", "host_s"},
                               {"of the host's time"},
                               {"share", "", CellKind::bars}});
    for (const Crossover& crossover : crossovers) {
        for (const HostCause& cause : crossover.causes) {
            const double share = cause.host_s / crossover.host_s;
            table.row();
            table.number(crossover.batch, significant(crossover.batch));
            table.text(name_of(cause.kind));
            table.number(static_cast<double>(cause.operations), std::to_string(cause.operations));
            table.number(cause.host_s, duration(cause.host_s));
            table.number(share, percent(share));
            table.bars({{"host", share}});
        }
    }
    return section("What costs the host most there", table.html());
}

std::string interval_table(const std::vector<Crossover>& crossovers) {
    PageTable table("interval", {{"crossover batch", "batch"},
                                 {"90 % from", "low"},
                                 {"to", "high"},
                                 {"host there", "host_s"},
                                 {"the GPU waits", "gpu_waits", CellKind::text}});
    for (const Crossover& crossover : crossovers) {
        table.row();
        for (const double batch : {crossover.batch, crossover.low, crossover.high})
            table.number(batch, significant(batch));
        table.number(crossover.host_s, duration(crossover.host_s));
        table.text(crossover.gpu_waits_above ? "above" : "below");
    }
    return table.html();
}

}  // namespace

std::string crossover_page(const PredictionReport& report, const PredictionReport& curve, const Graph& graph) {
    const Chart chart = latency_chart(curve);
    std::string html = facts_line(report) + to_figure(chart, "") + crossover_paragraph(*report.crossover);
    if (const auto& crossovers = report.crossover->crossovers; !crossovers.empty())
        html += interval_table(crossovers) + causes_section(crossovers);
    html += predictions_section(report) + rests_on_section(report, graph) + provenance_section(report);
    return page("Crossover of " + chart.title, html);
}

}  // namespace ftax::report
