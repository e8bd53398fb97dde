#include "src/report/generation_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "src/report/breakdown.hpp"
#include "src/report/chart.hpp"
#include "src/report/latency_chart.hpp"
#include "src/report/page.hpp"
#include "src/report/prediction_sections.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

Chart step_chart(const GenerationReport& report) {
    Chart chart{.title = fmt::format("{} on {}, {}, {}", report.run.model, report.run.device.device.name,
                                     report.run.framework.framework, name_of(report.run.precision)),
                .y_label = "milliseconds",
                .series = {}};
    std::vector<double> batches;
    const int cards = report.rows.back().cards;
    Series host{.label = "host, a step of decoding", .look = SeriesLook::host, .points = {}};
    Series device{.label = "device, a step of decoding", .look = SeriesLook::device, .points = {}};
    Series step{.label = "per token", .look = SeriesLook::prediction, .points = {}};
    Series first{.label = "first token", .look = SeriesLook::line, .points = {}, .category = 3};
    for (const GenerationRow& row : report.rows) {
        if (row.cards != cards) continue;
        const auto batch = static_cast<double>(row.generation.request.batch);
        batches.push_back(batch);
        host.points.push_back({batch, row.generation.decode_host_s * 1e3});
        device.points.push_back({batch, row.generation.decode_device_s * 1e3});
        step.points.push_back({batch, row.generation.tpot_s * 1e3});
        first.points.push_back({batch, row.generation.ttft_s * 1e3});
    }
    chart.series = {std::move(host), std::move(device), std::move(step), std::move(first)};
    for (Series& series : chart.series) {
        std::stable_sort(series.points.begin(), series.points.end(),
                         [](const auto& a, const auto& b) { return a.x < b.x; });
    }
    mark_crossovers(chart, report.rows.back().crossover.batches, "decoding's crossover");
    label_batches(chart, std::move(batches));
    return chart;
}

std::string generations_section(const GenerationReport& report) {
    const Grid table =
        generation_columns(report).select(report.rows,
                                          "cards batch ttft_s tpot_s total_s low_s high_s tokens_per_s "
                                          "=prefill_bound =decode_bound =total_bytes fits ?tokens_per_dollar");
    return section(fmt::format("Prompts of {} tokens, {} new ones", report.rows.back().generation.request.prompt,
                               report.rows.back().generation.request.new_tokens),
                   table.page_table("generations"));
}

std::vector<std::string> warnings_of(const GenerationReport& report) {
    std::set<std::string> warnings(report.run.warnings.begin(), report.run.warnings.end());
    for (const GenerationRow& row : report.rows)
        warnings.insert(row.generation.warnings.begin(), row.generation.warnings.end());
    return {warnings.begin(), warnings.end()};
}

}  // namespace

std::string generation_page(const GenerationReport& report, const ExplainedPass& prefill, const ExplainedPass& decode) {
    const Chart chart = step_chart(report);
    const Generation& last = report.rows.back().generation;
    const auto kinds = [](const ExplainedPass& pass) {
        return breakdown(pass.graph, pass.explanation.launches, kind_of);
    };
    std::string html = facts_line(report.run) + to_figure(chart, "") + generations_section(report) +
                       memory_section(last.memory) +
                       breakdown_section("operator kind, prompt", "prefill", kinds(prefill)) +
                       breakdown_section("operator kind, a step of decoding", "decode", kinds(decode)) +
                       section("Warnings", warning_list(warnings_of(report))) + provenance_section(report.run);
    return page(chart.title, html);
}

}  // namespace ftax::report
