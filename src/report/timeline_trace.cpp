#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "graphs/files/escape.hpp"
#include "graphs/files/json_document.hpp"
#include "src/report/launch_report.hpp"

namespace ftax::report {
namespace {

constexpr int process = 1;
constexpr int host_row = 1;
constexpr int device_row = 2;

/// Perfetto counts in nanoseconds; in fractions of them, slices that follow on each other would overlap and be lost.
double nanoseconds(double seconds) {
    return std::round(seconds * 1e9);
}

/// Converts to the format's unit, rounding up: some versions of Perfetto truncate, others round.
double microseconds(double nanoseconds) {
    const double result = nanoseconds / 1e3;
    return result * 1e3 < nanoseconds ? std::nextafter(result, 2 * result) : result;
}

Json name_row(std::string_view what, int row, const std::string& name) {
    return {{"ph", "M"}, {"pid", process}, {"tid", row}, {"name", what}, {"args", {{"name", escape_terminal(name)}}}};
}

Json duration_event(int row, std::string_view name, std::string_view category, double start_s, double end_s,
                    Json arguments) {
    return {{"ph", "X"},
            {"pid", process},
            {"tid", row},
            {"name", escape_terminal(name)},
            {"cat", category},
            {"ts", microseconds(nanoseconds(start_s))},
            {"dur", microseconds(nanoseconds(end_s) - nanoseconds(start_s))},
            {"args", std::move(arguments)}};
}

/// One end of the arrow that ties a launch to its first kernel; each binds to the event that encloses its time.
Json flow_event(std::string_view phase, int row, std::size_t launch, double at_s) {
    Json event = {{"ph", phase},
                  {"pid", process},
                  {"tid", row},
                  {"name", "launch"},
                  {"cat", "launch"},
                  {"id", launch},
                  {"ts", microseconds(nanoseconds(at_s))}};
    if (phase == "f") event["bp"] = "e";
    return event;
}

/// Writes the kernels of one launch in sequence. The simulation gives their total interval; the time beyond their own
/// (gaps) is distributed proportionally.
void append_kernels(Json& events, const Span& span, const std::vector<KernelDetail>& kernels, const Json& operation) {
    double total_s = 0;
    for (const KernelDetail& kernel : kernels) total_s += kernel.seconds;
    const double stretch = total_s > 0 ? (span.device_end_s - span.device_start_s) / total_s : 0;
    double start_s = span.device_start_s;
    for (const KernelDetail& kernel : kernels) {
        const double end_s = std::min(span.device_end_s, start_s + kernel.seconds * stretch);
        Json arguments = operation;
        arguments["units"] = kernel.path;
        arguments["bound"] = name_of(kernel.bound);
        arguments["seconds"] = kernel.seconds;
        arguments["why"] = escape_terminal(kernel.reason);
        events.push_back(duration_event(device_row, kernel.name, "kernel", start_s, end_s, std::move(arguments)));
        start_s = end_s;
    }
}

}  // namespace

std::string timeline_trace(const PredictionReport& header, const Graph& graph, const Explanation& explanation) {
    Json events = Json::array();
    events.push_back(name_row("process_name", host_row, "ftax prediction: " + header.model));
    events.push_back(name_row("thread_name", host_row, "host: " + header.framework.framework));
    events.push_back(name_row("thread_name", device_row, "device: " + header.device.device.name));
    for (std::size_t i = 0; i < explanation.launches.size(); ++i) {
        const OpPrediction& launch = explanation.launches[i];
        const Span& span = explanation.timeline[i];
        Json operation = {{"host_kind", name_of(launch.host_kind)}};
        std::string name(name_of(launch.host_kind));
        if (launch.op != no_op) {
            const Op& op = graph.ops[launch.op];
            name = op.name;
            operation["operator"] = escape_terminal(op.name);
            operation["source"] = escape_terminal(op.source);
            operation["module"] = escape_terminal(op.module);
        }
        events.push_back(duration_event(host_row, name, "host", span.host_start_s, span.host_end_s, operation));
        if (launch.kernels == 0) continue;
        events.push_back(flow_event("s", host_row, i, span.host_start_s));
        append_kernels(events, span, explanation.kernels[i], operation);
        // Behind the kernels: of events at the same time Perfetto ties the arrow to the one that begins last.
        events.push_back(flow_event("f", device_row, i, span.device_start_s));
    }
    const PredictionRow& row = header.rows.back();
    Json other = {{"device", header.device.device.slug},
                  {"device_profile", header.device.version},
                  {"framework", header.framework.framework},
                  {"framework_version", header.framework.version},
                  {"host", header.framework.host},
                  {"precision", name_of(header.precision)},
                  {"batch", row.batch ? Json(*row.batch) : Json(nullptr)},
                  {"latency_s", row.prediction.latency_s}};
    return to_text(
        Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}, {"otherData", std::move(other)}});
}

}  // namespace ftax::report
