#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/io/json_document.hpp"
#include "src/report/trace_comparison.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

using Json = nlohmann::ordered_json;

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

std::string unpredicted_table(const TraceComparison& comparison) {
    if (comparison.unpredicted.empty()) return {};
    Table table({{"only in the trace", Align::left}, {"calls per pass"}, {"host"}, {"device"}, {"kernels"}});
    for (const UnpredictedOperators& extra : comparison.unpredicted) {
        table.add({{extra.name},
                   {whole_or_tenths(extra.calls)},
                   {duration(extra.measured.host_s)},
                   {extra.measured.kernels > 0 ? duration(extra.measured.device_s) : ""},
                   {whole_or_tenths(extra.measured.kernels)}});
    }
    return "\n" + table.print({});
}

std::string host_table(const TraceComparison& comparison, const std::vector<TracedParameter>& parameters) {
    Table kinds({{"host cost", Align::left}, {"operators"}, {"predicted each"}, {"measured each"}, {"ratio"}});
    for (const HostKindTimes& kind : comparison.host_kinds) {
        kinds.add({{std::string(name_of(kind.kind))},
                   {std::to_string(kind.operators)},
                   {duration(kind.predicted_s)},
                   {duration(kind.measured_s)},
                   {ratio_text(kind.predicted_s, kind.measured_s)}});
    }
    std::string text = "\n" + kinds.print({});
    if (parameters.empty()) return text;
    Table table({{"the trace can calibrate", Align::left}, {"profile"}, {"trace"}});
    for (const TracedParameter& parameter : parameters) {
        table.add({{parameter.name}, {duration(parameter.value)}, {duration(parameter.traced)}});
    }
    return text + "\n" + table.print({}) +
           "Recording costs host time itself: these are upper bounds, least so without stacks, shapes and memory.\n";
}

Json times_json(const OperatorTimes& times) {
    return {{"host_s", times.host_s}, {"device_s", times.device_s}, {"kernels", times.kernels}};
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
        {"only_in_trace", Json::array()},
        {"host_kinds", Json::array()},
        {"parameters", Json::array()}};
    for (const ComparedOperator& op : comparison.operators) {
        json["operators"].push_back({{"operator", op.name},
                                     {"source", op.source},
                                     {"module", op.module},
                                     {"host_kind", name_of(op.host_kind)},
                                     {"predicted", times_json(op.predicted)},
                                     {"measured", op.measured ? times_json(*op.measured) : Json(nullptr)}});
    }
    for (const UnpredictedOperators& extra : comparison.unpredicted) {
        Json entry = {{"source", extra.name}, {"calls_per_pass", extra.calls}};
        entry.update(times_json(extra.measured));
        json["only_in_trace"].push_back(std::move(entry));
    }
    for (const HostKindTimes& kind : comparison.host_kinds) {
        json["host_kinds"].push_back({{"host_kind", name_of(kind.kind)},
                                      {"operators", kind.operators},
                                      {"predicted_s", kind.predicted_s},
                                      {"measured_s", kind.measured_s}});
    }
    for (const TracedParameter& parameter : parameters) {
        json["parameters"].push_back(
            {{"name", parameter.name}, {"profile", parameter.value}, {"trace", parameter.traced}});
    }
    return to_text(json);
}

}  // namespace ftax::report
