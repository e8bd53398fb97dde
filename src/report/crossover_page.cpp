#include "src/report/crossover_page.hpp"

#include <fmt/format.h>

#include "src/report/latency_chart.hpp"
#include "src/report/page.hpp"
#include "src/report/prediction_sections.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

std::string causes_section(const Crossover& crossover) {
    using Cause = HostCause;
    const auto share = [&](const Cause& cause) { return cause.host_s / crossover.host_s; };
    const Columns<Cause> columns{{"kind", "kind", Unit::text, &Cause::kind},
                                 {"operations", "operations", Unit::plain, &Cause::operations},
                                 {"host_s", "host", Unit::duration, &Cause::host_s},
                                 {"", "of the host's time", Unit::share, share},
                                 {"", "share", Unit::bars, [&](const Cause& c) {
                                      return Json{{"host", share(c)}};
                                  }}};
    return section(fmt::format("What costs the host most, of {}", duration(crossover.host_s)),
                   columns.select(crossover.causes).page_table("causes"));
}

std::string interval_table(const Crossover& crossover) {
    const Columns<Crossover> columns{{"batch", "crossover batch", Unit::significant, &Crossover::batch},
                                     {"low", "90 % from", Unit::significant, &Crossover::low},
                                     {"high", "to", Unit::significant, &Crossover::high},
                                     {"host_s", "host there", Unit::duration, &Crossover::host_s}};
    return columns.select(std::span(&crossover, 1)).page_table("interval");
}

}  // namespace

std::string crossover_page(const PredictionReport& report, const PredictionReport& curve, const Graph& graph) {
    const Chart chart = latency_chart(curve);
    std::string html = facts_line(report) + to_figure(chart, "") + crossover_paragraph(*report.crossover);
    if (const auto& crossover = report.crossover->crossover)
        html += interval_table(*crossover) + causes_section(*crossover);
    html += predictions_section(report) + rests_on_section(report, graph) + provenance_section(report);
    return page("Crossover of " + chart.title, html);
}

}  // namespace ftax::report
