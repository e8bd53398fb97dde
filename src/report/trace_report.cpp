#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/io/json_document.hpp"
#include "src/report/columns.hpp"
#include "src/report/trace_comparison.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

/// A ratio beyond these is marked: prediction and run part here.
constexpr double marked_ratio = 1.5;
constexpr std::size_t most_differences = 5;

std::string ratio_text(double predicted, double measured) {
    return predicted > 0 && measured > 0 ? fmt::format("{:.2f}", predicted / measured) : "";
}

Tone ratio_tone(double predicted, double measured) {
    if (predicted <= 0 || measured <= 0) return Tone::plain;
    const double ratio = predicted / measured;
    return ratio > marked_ratio || ratio < 1 / marked_ratio ? Tone::warning : Tone::plain;
}

std::string whole_or_tenths(double value) {
    return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
}

std::string summary(const TraceComparison& comparison, const KinetoTrace& trace) {
    std::string text = fmt::format("trace: {} complete forward passes, {} of its operators are the model's, in order\n",
                                   comparison.passes, percent(comparison.aligned));
    if (trace.damage.events() > 0 || trace.damage.truncated) {
        text += fmt::format(
            "damage: {} events unreadable, {} without a time, {} kernels or launches lost{}; {} events used\n",
            trace.damage.unreadable, trace.damage.untimed, trace.damage.lost_kernels,
            trace.damage.truncated ? ", the file is cut off" : "", trace.events.size());
    }
    Table table({{"", Align::left}, {"predicted"}, {"measured"}, {"ratio"}});
    const auto add = [&](const char* what, double predicted_s, double measured_s) {
        table.add({{what}, {duration(predicted_s)}, {duration(measured_s)}, {ratio_text(predicted_s, measured_s)}});
    };
    if (comparison.measured_latency_s) add("latency", comparison.predicted_latency_s, *comparison.measured_latency_s);
    add("host, operators of both", comparison.predicted.host_s, comparison.measured.host_s);
    if (comparison.has_kernels)
        add("device, operators of both", comparison.predicted.device_s, comparison.measured.device_s);
    return text + "\n" + table.print({});
}

/// Operators whose prediction is furthest off, by seconds.
std::string largest_differences(const TraceComparison& comparison) {
    struct Difference {
        const ComparedOperator* op;
        const char* side;
        double predicted_s, measured_s;
    };
    std::vector<Difference> differences;
    for (const ComparedOperator& op : comparison.operators) {
        if (!op.measured) continue;
        differences.push_back({&op, "host", op.predicted.host_s, op.measured->host_s});
        if (comparison.has_kernels)
            differences.push_back({&op, "device", op.predicted.device_s, op.measured->device_s});
    }
    std::stable_sort(differences.begin(), differences.end(), [](const Difference& a, const Difference& b) {
        return std::abs(a.predicted_s - a.measured_s) > std::abs(b.predicted_s - b.measured_s);
    });
    differences.resize(std::min(differences.size(), most_differences));
    std::string text = "\nprediction and run part most at\n";
    Table table({{"operator", Align::left},
                 {"source", Align::left},
                 {"module", Align::left},
                 {"side", Align::left},
                 {"predicted"},
                 {"measured"}});
    for (const Difference& difference : differences) {
        table.add({{difference.op->name},
                   {difference.op->source},
                   {difference.op->module},
                   {difference.side},
                   {duration(difference.predicted_s)},
                   {duration(difference.measured_s)}});
    }
    return text + table.print({});
}

std::string operators_table(const TraceComparison& comparison, Style style) {
    Table table({{"operator", Align::left},
                 {"source", Align::left},
                 {"module", Align::left},
                 {"host"},
                 {"measured"},
                 {"ratio"},
                 {"device"},
                 {"measured"},
                 {"ratio"},
                 {"kernels"},
                 {"measured"}});
    for (const ComparedOperator& op : comparison.operators) {
        const OperatorTimes& predicted = op.predicted;
        const bool device = predicted.kernels > 0;
        std::vector<Cell> cells{{op.name}, {op.source}, {op.module}, {duration(predicted.host_s)}};
        if (!op.measured) {
            cells.push_back({"not in the trace", Tone::warning});
            cells.insert(
                cells.end(),
                {{}, {device ? duration(predicted.device_s) : ""}, {}, {}, {whole_or_tenths(predicted.kernels)}, {}});
        } else {
            const OperatorTimes& measured = *op.measured;
            const bool on_device = comparison.has_kernels && (device || measured.kernels > 0);
            cells.push_back({duration(measured.host_s)});
            cells.push_back(
                {ratio_text(predicted.host_s, measured.host_s), ratio_tone(predicted.host_s, measured.host_s)});
            cells.push_back({device ? duration(predicted.device_s) : ""});
            cells.push_back({on_device ? duration(measured.device_s) : ""});
            cells.push_back({on_device ? ratio_text(predicted.device_s, measured.device_s) : "",
                             ratio_tone(predicted.device_s, measured.device_s)});
            cells.push_back({whole_or_tenths(predicted.kernels)});
            cells.push_back({comparison.has_kernels ? whole_or_tenths(measured.kernels) : "",
                             predicted.kernels == measured.kernels ? Tone::plain : Tone::warning});
        }
        table.add(std::move(cells));
    }
    return "\n" + table.print(style);
}

const Columns<OperatorTimes>& times_columns() {
    using Times = OperatorTimes;
    const auto calls = [](const Times& times) { return Value(times.kernels, whole_or_tenths(times.kernels)); };
    static const Columns<Times> columns{
        {"host_s", "host", Unit::duration, &Times::host_s},
        {"device_s", "device", Unit::duration,
         [](const Times& times) { return times.kernels > 0 ? Value(times.device_s) : Value(times.device_s, ""); }},
        {"kernels", "kernels", Unit::plain, calls}};
    return columns;
}

Json times_json(const OperatorTimes& times) {
    return times_columns().json(times);
}

Grid only_in_trace(const TraceComparison& comparison) {
    using Row = UnpredictedOperators;
    return Columns<Row>{{"source", "only in the trace", Unit::text, &Row::name},
                        {"calls_per_pass", "calls per pass", Unit::plain,
                         [](const Row& row) { return Value(row.calls, whole_or_tenths(row.calls)); }}}
        .including(times_columns(), &Row::measured)
        .select(comparison.unpredicted);
}

Columns<HostKindTimes> kind_columns() {
    using Row = HostKindTimes;
    return {{"host_kind", "host cost", Unit::text, &Row::kind},
            {"operators", "operators", Unit::plain, &Row::operators},
            {"predicted_s", "predicted each", Unit::duration, &Row::predicted_s},
            {"measured_s", "measured each", Unit::duration, &Row::measured_s},
            {"ratio", "ratio", Unit::plain,
             [](const Row& row) { return shown(ratio_text(row.predicted_s, row.measured_s)); }}};
}

Grid parameters_grid(const std::vector<TracedParameter>& parameters) {
    using Row = TracedParameter;
    return Columns<Row>{{"name", "the trace can calibrate", Unit::text, &Row::name},
                        {"profile", "profile", Unit::duration, &Row::value},
                        {"trace", "trace", Unit::duration, &Row::traced}}
        .select(parameters);
}

std::string unpredicted_table(const TraceComparison& comparison) {
    return comparison.unpredicted.empty() ? "" : "\n" + only_in_trace(comparison).print({});
}

std::string host_table(const TraceComparison& comparison, const std::vector<TracedParameter>& parameters) {
    std::string text = "\n" + kind_columns().select(comparison.host_kinds).print({});
    if (parameters.empty()) return text;
    return text + "\n" + parameters_grid(parameters).print({}) +
           "Recording costs host time itself: these are upper bounds, least so without stacks, shapes and memory.\n";
}

Json optional_json(const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
}

}  // namespace

std::string to_table(const TraceComparison& comparison, const KinetoTrace& trace,
                     const std::vector<TracedParameter>& parameters, Style style) {
    return summary(comparison, trace) + largest_differences(comparison) + operators_table(comparison, style) +
           unpredicted_table(comparison) + host_table(comparison, parameters);
}

std::string to_json(const TraceComparison& comparison, const KinetoTrace& trace,
                    const std::vector<TracedParameter>& parameters) {
    Json json = {
        {"schema_version", 1},
        {"passes", comparison.passes},
        {"aligned", comparison.aligned},
        {"has_kernels", comparison.has_kernels},
        {"gpu", trace.gpu},
        {"events", trace.events.size()},
        {"damage",
         {{"unreadable", trace.damage.unreadable},
          {"untimed", trace.damage.untimed},
          {"lost_kernels", trace.damage.lost_kernels},
          {"truncated", trace.damage.truncated}}},
        {"latency_s",
         {{"predicted", comparison.predicted_latency_s}, {"measured", optional_json(comparison.measured_latency_s)}}},
        {"predicted", times_json(comparison.predicted)},
        {"measured", times_json(comparison.measured)},
        {"operators", Json::array()},
        {"only_in_trace", only_in_trace(comparison).json()},
        {"host_kinds",
         kind_columns().select(comparison.host_kinds, "host_kind operators predicted_s measured_s").json()},
        {"parameters", parameters_grid(parameters).json()}};
    for (const ComparedOperator& op : comparison.operators) {
        json["operators"].push_back({{"operator", op.name},
                                     {"source", op.source},
                                     {"module", op.module},
                                     {"host_kind", name_of(op.host_kind)},
                                     {"predicted", times_json(op.predicted)},
                                     {"measured", op.measured ? times_json(*op.measured) : Json(nullptr)}});
    }
    return to_text(json);
}

}  // namespace ftax::report
