#include "src/report/comparison_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "graphs/files/escape.hpp"
#include "graphs/files/json_document.hpp"
#include "src/report/quantities.hpp"

namespace ftax::report {

void rank(ComparisonReport& report) {
    std::map<std::optional<std::int64_t>, double> best_s;
    for (const ComparisonRow& row : report.rows) {
        if (!row.prediction) continue;
        double& best = best_s.emplace(row.batch, row.prediction->latency_s).first->second;
        best = std::min(best, row.prediction->latency_s);
    }
    for (ComparisonRow& row : report.rows)
        if (row.prediction) row.ratio_to_best = row.prediction->latency_s / best_s.at(row.batch);
    rank_rows(report.rows, report.ranking);
}

Columns<ComparisonRow> comparison_columns(const ComparisonReport& report) {
    using Row = ComparisonRow;
    // The pairs of one batch share one scale for their bars.
    std::map<std::optional<std::int64_t>, double> longest_s;
    for (const Row& row : report.rows) {
        double& longest = longest_s[row.batch];
        if (row.prediction) longest = std::max({longest, row.prediction->host_s, row.prediction->device_s});
    }
    return Columns<Row>{{"model", "model", Unit::text, [&](const Row&) { return report.model; }},
                        {"device_profile", "profile", Unit::text, "version of the profile", &Row::device_profile},
                        {"batch", "batch", Unit::plain, "null if the model fixes it",
                         [](const Row& row) { return batch_value(row.batch); }},
                        {"ratio_to_best", "to best", Unit::plain, "latency relative to the fastest at the same batch",
                         [](const Row& row) {
                             if (!row.prediction) return Value();
                             const double ratio = row.ratio_to_best;
                             return Value(ratio, ratio == 1 ? "best" : significant(ratio) + "x");
                         }},
                        {"all_warnings", "", Unit::text,
                         [&](const Row& row) {
                             return row.prediction ? joined(report.warnings, row.prediction->warnings)
                                                   : report.warnings;
                         }},
                        {"bars", "host above device", Unit::bars,
                         [longest_s](const Row& row) {
                             const Prediction& p = *row.prediction;
                             return host_and_device_bars(p.host_s, p.device_s, longest_s.at(row.batch));
                         }}}
        .including(choice_columns(report.ranking), [](const Row& row) { return &row; })
        .including(prediction_columns(), &Row::prediction)
        .including(memory_columns(), &Row::memory);
}

std::string title_of(const ComparisonReport& report) {
    std::string common = Differences(choices_of(report.rows)).common(report.rows.front());
    for (const auto& [symbol, value] : report.dims)
        common += fmt::format("{}{} {}", common.empty() ? "" : ", ", symbol, value);
    return fmt::format("{}{}{}", report.model, common.empty() ? "" : ": ", common);
}

std::string to_table(const ComparisonReport& report, Style style) {
    const std::vector<const Choice*> choices = choices_of(report.rows);
    std::string text =
        print_verdict(report.ranking.verdict, style) + escape_terminal(title_of(report)) + "\n\n" +
        comparison_columns(report).print(rows_that_run(report.rows),
                                         Differences(choices).keys() +
                                             "batch latency_s interval items_per_s ?dollars_per_million ?keeps_level "
                                             "ratio_to_best evidence bound framework_overhead total_and_fits bars",
                                         style) +
        "\n";
    for (const std::string& line : reasons_of(choices)) text += "not compared: " + escape_terminal(line) + "\n";
    return text +
           "to best: latency against the fastest at the same batch; overhead: share of the latency during which the "
           "device waits\n";
}

std::string to_json(const ComparisonReport& report) {
    return document({{"model", report.model},
                     {"precision", report.precision},
                     {"dims", report.dims},
                     {"verdict", report.ranking.verdict},
                     {"rows", comparison_columns(report).json_rows(
                                  report.rows,
                                  "device device_profile framework framework_version host precision cards batch "
                                  "evidence skipped latency_s low_s high_s host_s device_s "
                                  "bound host_share framework_overhead sm_active power_w energy_j items_per_s "
                                  "dollars_per_million keeps_level ratio_to_best coverage_time warnings memory fits")}},
                    report.warnings);
}

std::string to_csv(const ComparisonReport& report) {
    return comparison_columns(report).csv(
        report.rows,
        "model device framework framework_version host precision cards batch latency_s low_s high_s host_s "
        "device_s bound host_share framework_overhead power_w energy_j items_per_s dollars_per_million "
        "keeps_level ratio_to_best evidence memory_bytes=total_bytes fits skipped warnings=all_warnings");
}

}  // namespace ftax::report
