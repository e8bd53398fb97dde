#include "src/report/comparison_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "ftax/equations.hpp"
#include "src/io/csv.hpp"
#include "src/io/escape.hpp"
#include "src/io/json_document.hpp"
#include "src/io/number.hpp"
#include "src/report/memory_report.hpp"
#include "src/report/prediction_report.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

using Json = nlohmann::ordered_json;

std::string batch_text(const ComparisonRow& row) {
    return row.batch ? std::to_string(*row.batch) : "fixed";
}

Json row_json(const ComparisonRow& row) {
    Json json = {{"device", row.device},       {"device_profile", row.device_profile},
                 {"framework", row.framework}, {"framework_version", row.framework_version},
                 {"host", row.host},           {"batch", row.batch ? Json(*row.batch) : Json(nullptr)}};
    if (!row.unmeasured.empty()) json["rules_without_rows_of"] = row.unmeasured;
    if (!row.prediction) {
        json["skipped"] = row.skipped;
        return json;
    }
    const Prediction& p = *row.prediction;
    json.update({{"latency_s", p.latency_s},
                 {"low_s", p.low_s},
                 {"high_s", p.high_s},
                 {"host_s", p.host_s},
                 {"device_s", p.device_s},
                 {"bound", name_of(p.bound)},
                 {"host_share", host_share(p)},
                 {"framework_overhead", equations::framework_overhead(p.latency_s, p.device_s)},
                 {"sm_active", p.sm_active},
                 {"ratio_to_best", row.ratio_to_best},
                 {"coverage_time", p.coverage.time},
                 {"warnings", p.warnings}});
    if (row.memory) {
        json["memory"] = memory_json(*row.memory);
        json["fits"] = row.memory->fits();
    }
    return json;
}

}  // namespace

double host_share(const Prediction& prediction) {
    return prediction.host_s / (prediction.host_s + prediction.device_s);
}

void rank(ComparisonReport& report) {
    std::map<std::optional<std::int64_t>, double> best_s;
    for (const ComparisonRow& row : report.rows) {
        if (!row.prediction) continue;
        const auto [best, first] = best_s.emplace(row.batch, row.prediction->latency_s);
        if (!first) best->second = std::min(best->second, row.prediction->latency_s);
    }
    for (ComparisonRow& row : report.rows) {
        if (row.prediction) row.ratio_to_best = row.prediction->latency_s / best_s.at(row.batch);
    }
}

std::vector<std::string> rules_without_rows(const ComparisonReport& report) {
    std::vector<std::string> lines;
    for (const ComparisonRow& row : report.rows) {
        if (!row.prediction || row.unmeasured.empty()) continue;
        std::string line =
            fmt::format("{}: no measured row of a {} stands behind its rules", row.framework, row.unmeasured);
        if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
    }
    return lines;
}

std::string to_table(const ComparisonReport& report, Style style) {
    std::string title = fmt::format("{}, {}", report.model, name_of(report.precision));
    for (const auto& [symbol, value] : report.dims) title += fmt::format(", {} {}", symbol, value);
    std::string text = toned(escape_terminal(title), Tone::strong, style) + "\n\n";
    Table table({{"device", Align::left},
                 {"framework", Align::left},
                 {"host", Align::left},
                 {"batch"},
                 {"latency ms"},
                 {"90 % interval"},
                 {"bound", Align::left},
                 {"host share"},
                 {"overhead"},
                 {"to best"},
                 {"memory"}});
    std::string skipped;
    for (const ComparisonRow& row : report.rows) {
        if (!row.prediction) {
            skipped +=
                fmt::format("not compared: {}\n",
                            escape_terminal(fmt::format("{} on {}: {}", row.framework, row.device, row.skipped)));
            continue;
        }
        const Prediction& p = *row.prediction;
        const bool best = row.ratio_to_best == 1;
        table.add(
            {{row.device},
             {fmt::format("{} {}", row.framework, row.framework_version)},
             {row.host},
             {batch_text(row)},
             {milliseconds(p.latency_s), best ? Tone::strong : Tone::plain},
             {fmt::format("{} to {}", milliseconds(p.low_s), milliseconds(p.high_s))},
             {std::string(name_of(p.bound)), p.bound == Bound::host ? Tone::warning : Tone::plain},
             {percent(host_share(p))},
             {percent(equations::framework_overhead(p.latency_s, p.device_s))},
             {best ? "best" : significant(row.ratio_to_best) + "x"},
             {row.memory ? byte_size(row.memory->total_bytes()) + (row.memory->fits() ? "" : ", does not fit") : "",
              row.memory && !row.memory->fits() ? Tone::warning : Tone::plain}});
    }
    text += table.print(style);
    if (!skipped.empty()) text += "\n" + skipped;
    for (const std::string& line : rules_without_rows(report)) text += "\n" + escape_terminal(line);
    return text + "\nhost share: of host and device time together; overhead: share of the latency that the GPU waits\n";
}

std::string to_json(const ComparisonReport& report) {
    Json json = {{"schema_version", 1},
                 {"model", report.model},
                 {"precision", name_of(report.precision)},
                 {"dims", report.dims},
                 {"rows", Json::array()}};
    for (const ComparisonRow& row : report.rows) json["rows"].push_back(row_json(row));
    json["warnings"] = report.warnings;
    return to_text(json);
}

std::string to_csv(const ComparisonReport& report) {
    std::string text;
    append_csv_row(text, std::vector<std::string>{"model",
                                                  "device",
                                                  "framework",
                                                  "framework_version",
                                                  "host",
                                                  "precision",
                                                  "batch",
                                                  "latency_s",
                                                  "low_s",
                                                  "high_s",
                                                  "host_s",
                                                  "device_s",
                                                  "bound",
                                                  "host_share",
                                                  "framework_overhead",
                                                  "ratio_to_best",
                                                  "memory_bytes",
                                                  "fits",
                                                  "skipped",
                                                  "warnings"});
    for (const ComparisonRow& row : report.rows) {
        std::vector<std::string> cells{report.model,
                                       row.device,
                                       row.framework,
                                       row.framework_version,
                                       row.host,
                                       std::string(name_of(report.precision)),
                                       row.batch ? std::to_string(*row.batch) : ""};
        if (row.prediction) {
            const Prediction& p = *row.prediction;
            for (const double s : {p.latency_s, p.low_s, p.high_s, p.host_s, p.device_s})
                cells.push_back(format_number(s));
            cells.emplace_back(name_of(p.bound));
            for (const double share :
                 {host_share(p), equations::framework_overhead(p.latency_s, p.device_s), row.ratio_to_best}) {
                cells.push_back(format_number(share));
            }
            cells.push_back(row.memory ? format_number(row.memory->total_bytes()) : "");
            cells.emplace_back(row.memory ? (row.memory->fits() ? "1" : "0") : "");
            cells.emplace_back();
            cells.push_back(one_cell(report.warnings, p.warnings));
        } else {
            cells.resize(cells.size() + 11);
            cells.push_back(row.skipped);
            cells.push_back(one_cell(report.warnings, {}));
        }
        append_csv_row(text, cells);
    }
    return text;
}

}  // namespace ftax::report
