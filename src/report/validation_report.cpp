#include "src/report/validation_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graphs/files/escape.hpp"
#include "graphs/files/number.hpp"
#include "src/report/columns.hpp"

namespace ftax::report {
namespace {

Value tenths(double fraction, Tone tone = Tone::plain) {
    return {fraction, fmt::format("{:.1f} %", 100 * fraction), tone};
}

std::string some_lines(const std::vector<std::size_t>& lines) {
    constexpr std::size_t shown = 5;
    return fmt::format("{}{}", fmt::join(std::span(lines).first(std::min(shown, lines.size())), ", "),
                       lines.size() > shown ? ", …" : "");
}

}  // namespace

std::optional<ErrorStatistics> error_statistics(std::span<const ValidatedRow* const> rows) {
    ErrorStatistics errors;
    std::vector<double> absolute;
    for (const ValidatedRow* row : rows) {
        if (!row->prediction) continue;
        const double error = row->prediction->latency_s / row->measured_s - 1;
        absolute.push_back(std::abs(error));
        errors.bias += error;
        if (row->prediction->low_s <= row->measured_s && row->measured_s <= row->prediction->high_s) ++errors.inside;
    }
    if (absolute.empty()) return std::nullopt;
    static_cast<ErrorFigures&>(errors) = error_figures(std::move(absolute));
    errors.bias /= static_cast<double>(errors.rows);
    errors.inside /= static_cast<double>(errors.rows);
    return errors;
}

std::optional<std::vector<std::string>> column_values(const CsvTable& table, std::string_view column) {
    static const std::map<std::string_view, std::string> defaults{{"framework", "pytorch-eager"},
                                                                  {"precision", "fp32"}};
    const auto at = table.column(column);
    const auto fallback = defaults.find(column);
    if (!at && fallback == defaults.end()) return std::nullopt;
    std::vector<std::string> values;
    values.reserve(table.rows());
    for (std::size_t i = 0; i < table.rows(); ++i) {
        values.emplace_back(at ? table.row(i)[*at] : "");
        if (values.back().empty() && fallback != defaults.end()) values.back() = fallback->second;
    }
    return values;
}

Columns<ErrorStatistics> error_columns() {
    using E = ErrorStatistics;
    return {
        {"rows", "rows", Unit::plain, "number of predicted rows", &E::rows},
        {"median_ape", "median", Unit::plain, "median absolute error", [](const E& e) { return tenths(e.median); }},
        {"mape", "MAPE", Unit::plain, "mean absolute error", [](const E& e) { return tenths(e.mean, Tone::strong); }},
        {"p90_ape", "P90", Unit::plain, "90th percentile of the absolute errors",
         [](const E& e) { return tenths(e.p90); }},
        {"bias", "bias", Unit::plain, "mean signed error",
         [](const E& e) { return Value(e.bias, fmt::format("{:+.1f} %", 100 * e.bias)); }},
        {"inside_interval", "inside 90 %", Unit::plain, "share of the rows inside the 90 % interval",
         [](const E& e) { return tenths(e.inside); }}};
}

Columns<ValidationGroup> group_columns(const std::vector<std::string>& by, std::span<const ValidationGroup> groups) {
    Columns<ValidationGroup> columns{};
    for (std::size_t i = 0; i < by.size(); ++i) {
        columns.add({by[i], by[i], by[i] == "batch" ? Unit::plain : Unit::text, [i](const ValidationGroup& group) {
                         const std::string text = i < group.values.size() ? group.values[i] : "";
                         const auto number = parse_number(text);
                         return number ? Value(*number, text) : Value(text);
                     }});
    }
    Columns<ValidationGroup> all = std::move(columns).including(error_columns(), &ValidationGroup::errors);
    if (std::ranges::none_of(groups, [](const ValidationGroup& group) { return group.cause.has_value(); })) return all;
    all.add({"cause", "likeliest cause", Unit::text, [](const ValidationGroup& group) {
                 const auto& cause = group.cause;
                 return cause ? shown(fmt::format("{} ({:.0f} %)", cause->sentence, 100 * cause->share)) : Value();
             }});
    return all;
}

const Columns<UsedProfile>& profile_columns() {
    using P = UsedProfile;
    static const Columns<P> columns{{"kind", "profile of a", Unit::text, "`device` or `framework`", &P::kind},
                                    {"name", "name", Unit::text, &P::name},
                                    {"version", "version", Unit::text, &P::version},
                                    {"host", "host", Unit::text, "of a framework's costs",
                                     [](const P& p) { return p.host.empty() ? shown("") : p.host; }}};
    return columns;
}

std::vector<ValidationGroup> errors_by(std::span<const std::string> values, std::span<const ValidatedRow> rows) {
    std::map<std::pair<double, std::string>, std::vector<const ValidatedRow*>> groups;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].prediction) groups[{parse_number(values[i]).value_or(0), values[i]}].push_back(&rows[i]);
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
    if (!report.by.empty())
        for (const auto& [values, members] : groups) report.groups.push_back({values, *error_statistics(members)});
    for (auto& [reason, lines] : skipped) report.skipped.push_back({reason, std::move(lines)});
    return report;
}

std::string verdict_of(const ValidationReport& report) {
    if (!report.overall) return fmt::format("none of {} rows could be predicted", report.rows);
    const ErrorStatistics& e = *report.overall;
    return fmt::format(
        "MAPE {:.1f} %, median {:.1f} %, bias {:+.1f} % over {} of {} rows; {:.0f} % inside 90 % intervals",
        100 * e.mean, 100 * e.median, 100 * e.bias, e.rows, report.rows, 100 * e.inside);
}

std::string to_table(const ValidationReport& report, Style style) {
    std::vector<ValidationGroup> groups = report.groups;
    if (report.overall) groups.push_back({{"all"}, *report.overall});
    Grid table = group_columns(report.by.empty() ? std::vector<std::string>{""} : report.by, groups).select(groups);
    for (std::size_t i = 0; i < report.by.size(); ++i) table.heads[i].unit = Unit::text;
    std::string text = print_verdict(verdict_of(report), style) + (report.overall ? "\n" + table.print(style) : "");
    std::size_t count = 0;
    for (const SkippedRows& skipped : report.skipped) count += skipped.lines.size();
    if (count > 0) text += fmt::format("\n{} of {} rows without a prediction:\n", count, report.rows);
    for (const SkippedRows& skipped : report.skipped)
        text += fmt::format("  {} (line{} {}): {}\n", skipped.lines.size(), skipped.lines.size() == 1 ? "" : "s",
                            some_lines(skipped.lines), escape_terminal(skipped.reason));
    if (!report.anchors.empty()) text += "\n";
    for (const auto& [gpu, plan] : report.anchors) text += escape_terminal(gpu) + ": " + print_anchors(plan) + "\n";
    return text;
}

void add_used(std::set<UsedProfile>& profiles, const DeviceProfile& device, const FrameworkProfile& framework) {
    profiles.insert({"device", device.device.slug, device.version, ""});
    profiles.insert({"framework", framework.framework, framework.version, framework.host});
}

std::string to_json(const ValidationReport& report) {
    Json json = {{"verdict", verdict_of(report)},
                 {"rows", report.rows},
                 {"overall", report.overall ? error_columns().json(*report.overall) : Json(nullptr)},
                 {"groups", Json::array()},
                 {"skipped", Json::array()},
                 {"profiles", profile_columns().json_rows(report.profiles)}};
    for (const ValidationGroup& group : report.groups) {
        Json values = Json::object();
        for (std::size_t i = 0; i < report.by.size(); ++i) values[report.by[i]] = group.values[i];
        json["groups"].push_back({{"group", std::move(values)}});
        json["groups"].back().update(error_columns().json(group.errors));
        if (const auto& cause = group.cause)
            json["groups"].back()["cause"] = {
                {"name", cause->name}, {"sentence", cause->sentence}, {"share", cause->share}};
    }
    for (const SkippedRows& skipped : report.skipped)
        json["skipped"].push_back({{"reason", skipped.reason}, {"lines", skipped.lines}});
    for (const auto& [gpu, plan] : report.anchors) {
        json["suggested_anchors"].push_back({{"gpu", gpu}, {"half_width", plan.half_width}, {"runs", Json::array()}});
        for (const SuggestedAnchor& run : plan.runs)
            json["suggested_anchors"].back()["runs"].push_back({{"row", run.label}, {"half_width", run.half_width}});
    }
    return document(std::move(json), report.warnings);
}

std::string predictions_csv(const CsvTable& table, std::span<const ValidatedRow> rows) {
    using P = RowPrediction;
    const Columns<P> predicted{{"predicted_ms", "", Unit::plain, [](const P& p) { return p.latency_s * 1e3; }},
                               {"low_ms", "", Unit::plain, [](const P& p) { return p.low_s * 1e3; }},
                               {"high_ms", "", Unit::plain, [](const P& p) { return p.high_s * 1e3; }},
                               {"bound", "", Unit::text, &P::bound},
                               {"coverage", "", Unit::plain, &P::coverage},
                               {"evidence", "", Unit::text, &P::evidence}};
    Columns<ValidatedRow> columns{};
    for (std::size_t i = 0; i < table.header().size(); ++i)
        columns.add({std::string(table.header()[i]), "", Unit::text, [&, i](const ValidatedRow& row) {
                         return table.row(static_cast<std::size_t>(&row - rows.data()))[i];
                     }});
    Columns<ValidatedRow> all = std::move(columns).including(predicted, &ValidatedRow::prediction);
    all.add({"skipped", "", Unit::text, &ValidatedRow::skipped});
    return all.csv(rows);
}

}  // namespace ftax::report
