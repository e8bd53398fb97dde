#include "src/report/validation_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "src/io/escape.hpp"
#include "src/io/json_document.hpp"
#include "src/io/number.hpp"

namespace ftax::report {
namespace {

/// Quantile of sorted values, linear between neighbours (NumPy's default).
double quantile(const std::vector<double>& sorted, double q) {
    const double position = q * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    const double fraction = position - static_cast<double>(below);
    return sorted[below] + fraction * (sorted[above] - sorted[below]);
}

std::string signed_percent(double fraction) {
    return fmt::format("{:+.1f} %", 100 * fraction);
}
std::string tenths(double fraction) {
    return fmt::format("{:.1f} %", 100 * fraction);
}

std::vector<Cell> error_cells(const ErrorStatistics& errors) {
    return {{std::to_string(errors.rows)}, {tenths(errors.median)},       {tenths(errors.mean), Tone::strong},
            {tenths(errors.p90)},          {signed_percent(errors.bias)}, {tenths(errors.inside)}};
}

nlohmann::ordered_json errors_json(const ErrorStatistics& errors) {
    return {{"rows", errors.rows},   {"median_ape", errors.median}, {"mape", errors.mean},
            {"p90_ape", errors.p90}, {"bias", errors.bias},         {"inside_interval", errors.inside}};
}

/// The first few lines of a list that may be long.
std::string some_lines(const std::vector<std::size_t>& lines) {
    constexpr std::size_t shown = 5;
    std::string text = fmt::format(
        "{}",
        fmt::join(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(std::min(shown, lines.size())), ", "));
    return lines.size() > shown ? text + ", …" : text;
}

}  // namespace

std::optional<ErrorStatistics> error_statistics(std::span<const ValidatedRow* const> rows) {
    ErrorStatistics errors;
    std::vector<double> absolute;
    for (const ValidatedRow* row : rows) {
        if (!row->prediction) continue;
        const double error = row->prediction->latency_s / row->measured_s - 1;
        absolute.push_back(std::abs(error));
        errors.mean += std::abs(error);
        errors.bias += error;
        if (row->prediction->low_s <= row->measured_s && row->measured_s <= row->prediction->high_s) ++errors.inside;
    }
    if (absolute.empty()) return std::nullopt;
    std::sort(absolute.begin(), absolute.end());
    errors.rows = absolute.size();
    const auto count = static_cast<double>(absolute.size());
    errors.mean /= count;
    errors.bias /= count;
    errors.inside /= count;
    errors.median = quantile(absolute, 0.5);
    errors.p90 = quantile(absolute, 0.9);
    return errors;
}

std::optional<std::vector<std::string>> column_values(const CsvTable& table, std::string_view column) {
    static const std::map<std::string_view, std::string> defaults{{"framework", "pytorch-eager"},
                                                                  {"precision", "fp32"}};
    const auto at = table.column(column);
    const auto fallback = defaults.find(column);
    if (!at && fallback == defaults.end()) return std::nullopt;
    std::vector<std::string> values;
    for (std::size_t i = 0; i < table.rows(); ++i) {
        values.emplace_back(at ? table.row(i)[*at] : "");
        if (values.back().empty() && fallback != defaults.end()) values.back() = fallback->second;
    }
    return values;
}

std::vector<ValidationGroup> errors_by(std::span<const std::string> values, std::span<const ValidatedRow> rows) {
    std::map<std::pair<double, std::string>, std::vector<const ValidatedRow*>> groups;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].prediction) groups[{parse_number(values[i]).value_or(0), values[i]}].push_back(&rows[i]);
    }
    std::vector<ValidationGroup> result;
    for (const auto& [value, members] : groups) result.push_back({{value.second}, *error_statistics(members)});
    return result;
}

ValidationReport summarise(const CsvTable& table, std::vector<std::string> by, std::span<const ValidatedRow> rows) {
    ValidationReport report{.by = std::move(by), .rows = rows.size()};
    std::map<std::vector<std::string>, std::vector<const ValidatedRow*>> groups;
    std::map<std::string, std::vector<std::size_t>> skipped;
    std::vector<const ValidatedRow*> all;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].prediction) {
            all.push_back(&rows[i]);
            groups[rows[i].group].push_back(&rows[i]);
        } else {
            skipped[rows[i].skipped].push_back(table.line(i));
        }
    }
    report.overall = error_statistics(all);
    if (!report.by.empty()) {
        for (const auto& [values, members] : groups) report.groups.push_back({values, *error_statistics(members)});
    }
    for (auto& [reason, lines] : skipped) report.skipped.push_back({reason, std::move(lines)});
    return report;
}

std::string to_table(const ValidationReport& report, Style style) {
    std::vector<Table::Column> columns;
    for (const std::string& column : report.by) columns.push_back({column, Align::left});
    if (columns.empty()) columns.push_back({"", Align::left});
    const std::size_t labels = columns.size();
    columns.insert(columns.end(), {{"rows"}, {"median"}, {"MAPE"}, {"P90"}, {"bias"}, {"inside 90 %"}});
    Table table(std::move(columns));
    const auto add = [&](const std::vector<std::string>& values, const ErrorStatistics& errors) {
        std::vector<Cell> cells;
        for (std::size_t i = 0; i < labels; ++i) cells.push_back({i < values.size() ? values[i] : ""});
        for (Cell& cell : error_cells(errors)) cells.push_back(std::move(cell));
        table.add(std::move(cells));
    };
    for (const ValidationGroup& group : report.groups) add(group.values, group.errors);
    if (report.overall) add({"all"}, *report.overall);
    std::string text = report.overall ? table.print(style) : "no row could be predicted\n";
    std::size_t count = 0;
    for (const SkippedRows& skipped : report.skipped) count += skipped.lines.size();
    if (count > 0) text += fmt::format("\n{} of {} rows without a prediction:\n", count, report.rows);
    for (const SkippedRows& skipped : report.skipped) {
        text += fmt::format("  {} (line{} {}): {}\n", skipped.lines.size(), skipped.lines.size() == 1 ? "" : "s",
                            some_lines(skipped.lines), escape_terminal(skipped.reason));
    }
    return text;
}

UsedProfile used(const DeviceProfile& profile) {
    return {.kind = "device", .name = profile.device.slug, .version = profile.version, .host = {}};
}

UsedProfile used(const FrameworkProfile& profile) {
    return {.kind = "framework", .name = profile.framework, .version = profile.version, .host = profile.host};
}

std::string to_json(const ValidationReport& report) {
    using Json = nlohmann::ordered_json;
    Json json = {{"schema_version", 1},
                 {"rows", report.rows},
                 {"overall", report.overall ? errors_json(*report.overall) : Json(nullptr)},
                 {"groups", Json::array()},
                 {"skipped", Json::array()},
                 {"profiles", Json::array()}};
    for (const ValidationGroup& group : report.groups) {
        Json values = Json::object();
        for (std::size_t i = 0; i < report.by.size(); ++i) values[report.by[i]] = group.values[i];
        Json entry = {{"group", std::move(values)}};
        entry.update(errors_json(group.errors));
        json["groups"].push_back(std::move(entry));
    }
    for (const SkippedRows& skipped : report.skipped) {
        json["skipped"].push_back({{"reason", skipped.reason}, {"lines", skipped.lines}});
    }
    for (const UsedProfile& profile : report.profiles) {
        Json entry = {{"kind", profile.kind}, {"name", profile.name}, {"version", profile.version}};
        if (!profile.host.empty()) entry["host"] = profile.host;
        json["profiles"].push_back(std::move(entry));
    }
    json["warnings"] = report.warnings;
    return to_text(json);
}

std::string predictions_csv(const CsvTable& table, std::span<const ValidatedRow> rows) {
    std::string text;
    const auto append = [&](std::span<const std::string_view> own, const std::vector<std::string>& added) {
        std::vector<std::string> cells(own.begin(), own.end());
        cells.insert(cells.end(), added.begin(), added.end());
        append_csv_row(text, cells);
    };
    append(table.header(), {"predicted_ms", "low_ms", "high_ms", "bound", "coverage", "skipped"});
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto& prediction = rows[i].prediction;
        if (!prediction) {
            append(table.row(i), {"", "", "", "", "", rows[i].skipped});
            continue;
        }
        append(table.row(i), {format_number(prediction->latency_s * 1e3), format_number(prediction->low_s * 1e3),
                              format_number(prediction->high_s * 1e3), std::string(name_of(prediction->bound)),
                              format_number(prediction->coverage), ""});
    }
    return text;
}

}  // namespace ftax::report
