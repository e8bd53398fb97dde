#include "src/report/headroom_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/io/csv.hpp"
#include "src/io/json_document.hpp"
#include "src/io/number.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

using Json = nlohmann::ordered_json;

const Prediction& base(const HeadroomReport& report) {
    return report.run.rows.front().prediction;
}

/// Dimensions are whole numbers, width and depth factors.
std::string value_text(const Headroom& growth, double value) {
    if (growth.property == "width" || growth.property == "depth") return fmt::format("{:.2f}x", value);
    return fmt::format("{:.0f}", value);
}

}  // namespace

std::string to_table(const HeadroomReport& report, Style style) {
    std::string text = print_header(report.run, style);
    text += fmt::format("latency {} ms, bound by {}; within {:.4g} % more:\n\n", milliseconds(base(report).latency_s),
                        name_of(base(report).bound), 100 * report.budget);
    Table growths(
        {{"property", Align::left}, {"from"}, {"to"}, {"growth"}, {"latency ms"}, {"bound there", Align::left}});
    std::string skipped;
    for (const Headroom& growth : report.growths) {
        if (!growth.skipped.empty()) {
            skipped += fmt::format("{}: {}\n", growth.property, growth.skipped);
            continue;
        }
        growths.add({{growth.property},
                     {value_text(growth, growth.from)},
                     {value_text(growth, growth.to) + (growth.is_open ? " or more" : "")},
                     {fmt::format("{:.2f}x", growth.to / growth.from), Tone::strong},
                     {milliseconds(growth.latency_s)},
                     {std::string(name_of(growth.bound))}});
    }
    text += growths.print(style) + skipped;
    if (report.switches.empty()) return text;
    text += fmt::format("\ninstead of {}:\n\n", report.run.framework.framework);
    Table switches({{"framework", Align::left}, {"latency ms"}, {"speed"}, {"bound", Align::left}, {"", Align::left}});
    for (const FrameworkSwitch& other : report.switches) {
        switches.add({{other.framework},
                      {milliseconds(other.latency_s)},
                      {significant(base(report).latency_s / other.latency_s) + "x",
                       &other == report.switches.data() ? Tone::strong : Tone::plain},
                      {std::string(name_of(other.bound))},
                      {other.is_calibrated ? "" : "start values, nothing measured"}});
    }
    return text + switches.print(style);
}

std::string to_json(const HeadroomReport& report) {
    Json json = {{"schema_version", 1},
                 {"model", report.run.model},
                 {"device", report.run.device.device.slug},
                 {"framework", report.run.framework.framework},
                 {"framework_version", report.run.framework.version},
                 {"host", report.run.framework.host},
                 {"precision", name_of(report.run.precision)},
                 {"latency_s", base(report).latency_s},
                 {"bound", name_of(base(report).bound)},
                 {"budget", report.budget},
                 {"fits", !report.run.rows.front().memory || report.run.rows.front().memory->fits()},
                 {"headroom", Json::array()},
                 {"frameworks", Json::array()},
                 {"warnings", report.run.warnings}};
    for (const std::string& warning : base(report).warnings) json["warnings"].push_back(warning);
    for (const Headroom& growth : report.growths) {
        Json row = {{"property", growth.property}};
        if (growth.skipped.empty()) {
            row.update({{"from", growth.from},
                        {"to", growth.to},
                        {"open", growth.is_open},
                        {"latency_s", growth.latency_s},
                        {"bound", name_of(growth.bound)}});
        } else {
            row["skipped"] = growth.skipped;
        }
        json["headroom"].push_back(std::move(row));
    }
    for (const FrameworkSwitch& other : report.switches) {
        json["frameworks"].push_back({{"framework", other.framework},
                                      {"latency_s", other.latency_s},
                                      {"bound", name_of(other.bound)},
                                      {"calibrated", other.is_calibrated}});
    }
    return to_text(json);
}

std::string to_csv(const HeadroomReport& report) {
    std::string text;
    append_csv_row(
        text, std::vector<std::string>{"property", "from", "to", "open", "latency_s", "bound", "skipped", "warnings"});
    const std::string warnings = one_cell(report.run.warnings, base(report).warnings);
    for (const Headroom& growth : report.growths) {
        const bool grows = growth.skipped.empty();
        append_csv_row(
            text, std::vector<std::string>{
                      growth.property, grows ? format_number(growth.from) : "", grows ? format_number(growth.to) : "",
                      grows ? (growth.is_open ? "1" : "0") : "", grows ? format_number(growth.latency_s) : "",
                      grows ? std::string(name_of(growth.bound)) : "", growth.skipped, warnings});
    }
    for (const FrameworkSwitch& other : report.switches) {
        append_csv_row(text, std::vector<std::string>{"framework", report.run.framework.framework, other.framework, "",
                                                      format_number(other.latency_s), std::string(name_of(other.bound)),
                                                      "", warnings});
    }
    return text;
}

}  // namespace ftax::report
