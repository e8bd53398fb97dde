#include "src/report/crossover_page.hpp"

#include <fmt/format.h>

#include "src/report/latency_chart.hpp"
#include "src/report/page.hpp"
#include "src/report/prediction_sections.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

std::string causes_section(const std::vector<Crossover>& crossovers) {
    struct Cause : HostCause {
        double batch = 0, share = 0;
    };
    std::vector<Cause> causes;
    for (const Crossover& crossover : crossovers) {
        for (const HostCause& cause : crossover.causes)
            causes.push_back({cause, crossover.batch, cause.host_s / crossover.host_s});
    }
    const Columns<Cause> columns{{"", "at batch", Unit::significant, &Cause::batch},
                                 {"kind", "kind", Unit::text, &Cause::kind},
                                 {"operations", "operations", Unit::plain, &Cause::operations},
                                 {"host_s", "host", Unit::duration, &Cause::host_s},
                                 {"", "of the host's time", Unit::share, &Cause::share},
                                 {"", "share", Unit::bars, [](const Cause& c) {
                                      return Json{{"host", c.share}};
                                  }}};
    return section("What costs the host most there", columns.select(causes).page_table("causes"));
}

std::string interval_table(const std::vector<Crossover>& crossovers) {
    const auto waits = [](const Crossover& crossover) { return crossover.gpu_waits_above ? "above" : "below"; };
    const Columns<Crossover> columns{{"batch", "crossover batch", Unit::significant, &Crossover::batch},
                                     {"low", "90 % from", Unit::significant, &Crossover::low},
                                     {"high", "to", Unit::significant, &Crossover::high},
                                     {"host_s", "host there", Unit::duration, &Crossover::host_s},
                                     {"gpu_waits", "the GPU waits", Unit::text, waits}};
    return columns.select(crossovers).page_table("interval");
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
