#include "src/report/headroom_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

#include "graphs/files/json_document.hpp"
#include "src/report/quantities.hpp"

namespace ftax::report {
namespace {

const Prediction& base(const HeadroomReport& report) {
    return report.run.rows.front().prediction;
}

/// Dimensions are whole numbers, width and depth factors.
std::string value_text(const Headroom& growth, double value) {
    if (growth.property == "width" || growth.property == "depth") return fmt::format("{:.2f}x", value);
    return fmt::format("{:.0f}", value);
}

/// What qualifies the time under another framework; empty without.
std::string note_on(const FrameworkSwitch& row) {
    if (!row.is_calibrated) return "initial values (not measured)";
    return row.evidence >= Evidence::far ? "far from this framework's measurements" : "";
}

/// What more latency than the budget allows, if it is much: "7.1 % more: 640".
std::string beyond(const Headroom& growth, double base_s) {
    constexpr double much = 1.05;
    if (growth.next_to < much * growth.to) return "";
    return fmt::format("{:.3g} % more: {}", 100 * (growth.next_latency_s / base_s - 1),
                       value_text(growth, growth.next_to));
}

constexpr std::string_view growth_keys = "property from to open latency_s bound next_latency_s next_to skipped";

}  // namespace

Columns<Headroom> growth_columns(const std::vector<std::string>& warnings) {
    using Row = Headroom;
    const auto grown = [](auto value) {
        return [value](const Row& row) { return row.skipped.empty() ? Value(std::invoke(value, row)) : Value(); };
    };
    const auto if_more = [grown](auto value) {
        return [=](const Row& row) { return row.next_to > 0 ? grown(value)(row) : Value(); };
    };
    return {{"property", "property", Unit::text, "`batch`, another dimension, `width` or `depth`", &Row::property},
            {"from", "from", Unit::plain, "its value; 1 for width and depth, which are factors",
             grown([](const Row& row) { return Value(row.from, value_text(row, row.from)); })},
            {"to", "to", Unit::plain, "the largest value within the budget", grown([](const Row& row) {
                 return Value(row.to, value_text(row, row.to) + (row.is_open ? " or more" : ""));
             })},
            {"open", "", Unit::plain, "whether the search ended before the budget was used up", grown(&Row::is_open)},
            {"growth", "growth", Unit::plain, grown([](const Row& row) {
                 return Value(row.to / row.from, fmt::format("{:.2f}x", row.to / row.from), Tone::strong);
             })},
            {"latency_s", "latency", Unit::milliseconds, "latency at `to`", grown(&Row::latency_s)},
            {"bound", "bound there", Unit::text, bound_meaning, grown(&Row::bound)},
            {"next_latency_s", "next latency", Unit::milliseconds, "latency one step beyond `to`",
             if_more(&Row::next_latency_s)},
            {"next_to", "to there", Unit::plain, "the largest value within 0.5 % of that latency",
             if_more([](const Row& row) { return Value(row.next_to, value_text(row, row.next_to)); })},
            {"skipped", "why not", Unit::text, "why it cannot grow, in place of the figures",
             [](const Row& row) { return row.skipped.empty() ? Value() : Value(row.skipped); }},
            {"warnings", "", Unit::text, [=](const Row&) { return warnings; }}};
}

Columns<FrameworkSwitch> switch_columns(const HeadroomReport& report) {
    using Row = FrameworkSwitch;
    return {{"framework", "framework", Unit::text, &Row::framework},
            {"framework_version", "version", Unit::text, &Row::version},
            {"latency_s", "latency", Unit::milliseconds, &Row::latency_s},
            {"speed", "speed", Unit::plain,
             [&](const Row& row) {
                 const double speed = base(report).latency_s / row.latency_s;
                 return Value(speed, significant(speed) + "x",
                              &row == report.switches.data() ? Tone::strong : Tone::plain);
             }},
            {"bound", "bound", Unit::text, bound_meaning, &Row::bound},
            {"calibrated", "", Unit::text, "false: host costs are initial values", &Row::is_calibrated},
            {"evidence", "", Unit::text, "as in a prediction", &Row::evidence},
            {"note", "note", Unit::text, note_on}};
}

std::string verdict_of(const HeadroomReport& report) {
    std::vector<std::string> growths;
    for (const Headroom& growth : report.growths) {
        if (!growth.skipped.empty()) continue;
        const double factor = growth.to / growth.from;
        growths.push_back(factor < 1.005 ? "no larger " + growth.property
                                         : fmt::format("{} times the {}", significant(factor), growth.property));
        if (const std::string more = beyond(growth, base(report).latency_s); !more.empty())
            growths.back() += fmt::format(" ({})", more);
    }
    std::string text = fmt::format("{}, bound by {}; {:.4g} % more latency allows {}", duration(base(report).latency_s),
                                   name_of(base(report).bound), 100 * report.budget, fmt::join(growths, ", "));
    if (!report.switches.empty()) {
        const FrameworkSwitch& fastest = report.switches[0];
        text += fmt::format("; under {} {} times as fast", fastest.framework,
                            significant(base(report).latency_s / fastest.latency_s));
        if (const std::string note = note_on(fastest); !note.empty()) text += fmt::format(" ({})", note);
    }
    return text;
}

std::string to_table(const HeadroomReport& report, Style style) {
    std::string text = print_verdict(verdict_of(report), style) + print_header(report.run, style);
    text += growth_columns().print(report.growths,
                                   "property from to growth latency_s bound ?next_latency_s ?next_to ?skipped", style);
    if (report.switches.empty()) return text;
    return text + fmt::format("\ninstead of {}:\n\n{}", report.run.framework.framework,
                              switch_columns(report).print(
                                  report.switches, "framework framework_version latency_s speed bound note", style));
}

std::string to_json(const HeadroomReport& report) {
    return document(
        {{"model", report.run.model},
         {"device", report.run.device.device.slug},
         {"framework", report.run.framework.framework},
         {"framework_version", report.run.framework.version},
         {"host", report.run.framework.host},
         {"precision", name_of(report.run.precision)},
         {"latency_s", base(report).latency_s},
         {"bound", name_of(base(report).bound)},
         {"budget", report.budget},
         {"verdict", verdict_of(report)},
         {"fits", !report.run.rows.front().memory || report.run.rows.front().memory->fits()},
         {"headroom", growth_columns().json_rows(report.growths, growth_keys)},
         {"frameworks", switch_columns(report).json_rows(
                            report.switches, "framework framework_version latency_s bound calibrated evidence")}},
        joined(report.run.warnings, base(report).warnings));
}

std::string to_csv(const HeadroomReport& report) {
    const std::vector<std::string> warnings = joined(report.run.warnings, base(report).warnings);
    Grid table = growth_columns(warnings).select(report.growths, std::string(growth_keys) + " warnings");
    const std::string& own = report.run.framework.framework;
    for (const FrameworkSwitch& to : report.switches)
        table.rows.push_back({"framework", own, to.framework, {}, to.latency_s, to.bound, {}, {}, {}, warnings});
    return table.csv();
}

}  // namespace ftax::report
