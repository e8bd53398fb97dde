#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/report/columns.hpp"
#include "src/report/trace_comparison.hpp"

namespace ftax::report {
namespace {

/// A ratio beyond these is marked: prediction and run part here.
constexpr double marked_ratio = 1.5;
constexpr std::size_t most_differences = 5;

std::string whole_or_tenths(double value) {
    return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
}

Value ratio(double predicted, double measured) {
    if (predicted <= 0 || measured <= 0) return {};
    const double ratio = predicted / measured;
    return shown(fmt::format("{:.2f}", ratio),
                 ratio > marked_ratio || ratio < 1 / marked_ratio ? Tone::warning : Tone::plain);
}

const Columns<OperatorTimes>& times_columns() {
    using Times = OperatorTimes;
    static const Columns<Times> columns{
        {"host_s", "host", Unit::duration, &Times::host_s},
        {"device_s", "device", Unit::duration,
         [](const Times& times) { return times.kernels > 0 ? Value(times.device_s) : Value(times.device_s, ""); }},
        {"kernels", "kernels", Unit::plain,
         [](const Times& times) { return Value(times.kernels, whole_or_tenths(times.kernels)); }}};
    return columns;
}

Json times_json(const std::optional<OperatorTimes>& times) {
    return times ? times_columns().json(*times) : Json(nullptr);
}

Columns<ComparedOperator> operator_columns(bool has_kernels) {
    using Op = ComparedOperator;
    const auto is_on_device = [=](const Op& op) {
        return op.measured && has_kernels && (op.predicted.kernels > 0 || op.measured->kernels > 0);
    };
    return Columns<Op>{
        {"operator", "operator", Unit::text, &Op::name},
        {"source", "source", Unit::text, &Op::source},
        {"module", "module", Unit::text, &Op::module},
        {"host_kind", "", Unit::text, &Op::host_kind},
        {"predicted", "", Unit::text, [](const Op& op) { return times_json(op.predicted); }},
        {"measured", "", Unit::text, [](const Op& op) { return times_json(op.measured); }},
        {"measured_host_s", "measured", Unit::duration,
         [](const Op& op) {
             return op.measured ? Value(op.measured->host_s) : shown("not in the trace", Tone::warning);
         }},
        {"host_ratio", "ratio", Unit::plain,
         [](const Op& op) { return op.measured ? ratio(op.predicted.host_s, op.measured->host_s) : Value(); }},
        {"measured_device_s", "measured", Unit::duration,
         [=](const Op& op) { return is_on_device(op) ? Value(op.measured->device_s) : Value(); }},
        {"device_ratio", "ratio", Unit::plain,
         [=](const Op& op) {
             return is_on_device(op) ? ratio(op.predicted.device_s, op.measured->device_s) : Value();
         }},
        {"measured_kernels", "measured", Unit::plain,
         [=](const Op& op) {
             if (!op.measured || !has_kernels) return Value();
             const bool is_equal = op.predicted.kernels == op.measured->kernels;
             return shown(whole_or_tenths(op.measured->kernels), is_equal ? Tone::plain : Tone::warning);
         }}}
        .including(times_columns(), &Op::predicted);
}

/// A time of a whole pass, or of one side of an operator.
struct ComparedTime {
    std::string_view what;
    double predicted_s, measured_s;
    const ComparedOperator* op = nullptr;
};

std::string times_table(const std::vector<ComparedTime>& times, std::string_view keys) {
    using Time = ComparedTime;
    return Columns<Time>{
        {"what", "", Unit::text, &Time::what},
        {"side", "side", Unit::text, &Time::what},
        {"predicted_s", "predicted", Unit::duration, &Time::predicted_s},
        {"measured_s", "measured", Unit::duration, &Time::measured_s},
        {"ratio", "ratio", Unit::plain, [](const Time& time) { return ratio(time.predicted_s, time.measured_s); }}}
        .including(operator_columns(true), &Time::op)
        .print(times, keys, {});
}

std::string summary(const TraceComparison& comparison, const KinetoTrace& trace) {
    std::string text = fmt::format("trace: {} complete forward passes, {} of its operators are the model's, in order\n",
                                   comparison.passes, percent(comparison.aligned));
    if (trace.damage.events() > 0 || trace.damage.truncated)
        text += fmt::format(
            "damage: {} events unreadable, {} without a time, {} kernels or launches lost{}; {} events used\n",
            trace.damage.unreadable, trace.damage.untimed, trace.damage.lost_kernels,
            trace.damage.truncated ? ", the file is cut off" : "", trace.events.size());
    const OperatorTimes &predicted = comparison.predicted, &measured = comparison.measured;
    std::vector<ComparedTime> times{{"host, operators of both", predicted.host_s, measured.host_s}};
    if (comparison.measured_latency_s)
        times.insert(times.begin(), {"latency", comparison.predicted_latency_s, *comparison.measured_latency_s});
    if (comparison.has_kernels) times.push_back({"device, operators of both", predicted.device_s, measured.device_s});
    return text + "\n" + times_table(times, "what predicted_s measured_s ratio");
}

/// Operators whose prediction is furthest off, by seconds.
std::string largest_differences(const TraceComparison& comparison) {
    std::vector<ComparedTime> differences;
    for (const ComparedOperator& op : comparison.operators) {
        if (!op.measured) continue;
        differences.push_back({"host", op.predicted.host_s, op.measured->host_s, &op});
        if (comparison.has_kernels)
            differences.push_back({"device", op.predicted.device_s, op.measured->device_s, &op});
    }
    const auto difference_s = [](const ComparedTime& time) { return std::abs(time.predicted_s - time.measured_s); };
    std::ranges::stable_sort(differences, std::greater<>(), difference_s);
    differences.resize(std::min(differences.size(), most_differences));
    return "\nlargest differences between prediction and run\n" +
           times_table(differences, "operator source module side predicted_s measured_s");
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
            {"ratio", "ratio", Unit::plain, [](const Row& row) { return ratio(row.predicted_s, row.measured_s); }}};
}

Grid parameters_grid(const std::vector<TracedParameter>& parameters) {
    using Row = TracedParameter;
    return Columns<Row>{{"name", "the trace can calibrate", Unit::text, &Row::name},
                        {"profile", "profile", Unit::duration, &Row::value},
                        {"trace", "trace", Unit::duration, &Row::traced}}
        .select(parameters);
}

std::string host_table(const TraceComparison& comparison, const std::vector<TracedParameter>& parameters) {
    std::string text = "\n" + kind_columns().print(comparison.host_kinds, "", {});
    if (parameters.empty()) return text;
    return text + "\n" + parameters_grid(parameters).print({}) +
           "Recording costs host time itself: these are upper bounds, least so without stacks, shapes and memory.\n";
}

}  // namespace

std::string verdict_of(const TraceComparison& comparison) {
    const auto error = [](double predicted_s, double traced_s) {
        return traced_s > 0 ? fmt::format("{:+.1f} %", 100 * (predicted_s / traced_s - 1)) : "not in the trace";
    };
    const OperatorTimes &predicted = comparison.predicted, &measured = comparison.measured;
    std::string text = "predicted " + duration(comparison.predicted_latency_s);
    if (const auto traced_s = comparison.measured_latency_s)
        text += fmt::format(", traced {}: {}", duration(*traced_s), error(comparison.predicted_latency_s, *traced_s));
    text += fmt::format("; of the operators in both, host {}", error(predicted.host_s, measured.host_s));
    if (comparison.has_kernels) text += fmt::format(", device {}", error(predicted.device_s, measured.device_s));
    return text;
}

std::string to_table(const TraceComparison& comparison, const KinetoTrace& trace,
                     const std::vector<TracedParameter>& parameters, Style style) {
    const std::string operators = operator_columns(comparison.has_kernels)
                                      .print(comparison.operators,
                                             "operator source module host_s measured_host_s host_ratio device_s "
                                             "measured_device_s device_ratio kernels measured_kernels",
                                             style);
    return summary(comparison, trace) + largest_differences(comparison) + "\n" + operators +
           (comparison.unpredicted.empty() ? "" : "\n" + only_in_trace(comparison).print({})) +
           host_table(comparison, parameters);
}

std::string to_json(const TraceComparison& comparison, const KinetoTrace& trace,
                    const std::vector<TracedParameter>& parameters) {
    return document(
        {{"verdict", verdict_of(comparison)},
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
          {{"predicted", comparison.predicted_latency_s},
           {"measured", comparison.measured_latency_s ? Json(*comparison.measured_latency_s) : Json()}}},
         {"predicted", times_json(comparison.predicted)},
         {"measured", times_json(comparison.measured)},
         {"operators", operator_columns(comparison.has_kernels)
                           .json_rows(comparison.operators, "operator source module host_kind predicted measured")},
         {"only_in_trace", only_in_trace(comparison).json()},
         {"host_kinds", kind_columns().json_rows(comparison.host_kinds, "host_kind operators predicted_s measured_s")},
         {"parameters", parameters_grid(parameters).json()}});
}

}  // namespace ftax::report
