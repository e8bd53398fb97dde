#include "src/report/prediction_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ftax/equations.hpp"
#include "src/io/csv.hpp"
#include "src/io/escape.hpp"
#include "src/io/number.hpp"
#include "src/report/units.hpp"

namespace ftax::report {
namespace {

/// What people call the kinds of host work, indexed by HostKind.
constexpr auto cause_names = std::to_array<std::string_view>(
    {"convolution{}", "depthwise convolution{}", "grouped convolution{}", "batch norm{}", "matrix product{}",
     "batched matrix product{}", "layer norm{}",
     "elementwise kernel{} (pointwise, pool, softmax, copy, reduce, gather)", "view{}", "module call{}",
     "part{} of concatenations", "fused kernel{}", "engine layer{}", "engine call{}", "graph node{}", "forward call{}",
     "sequence{}", "synchronization{}"});
static_assert(cause_names.size() == host_kind_count);

std::string describe(const DeviceProfile& device) {
    return device.version.empty() ? "none (built-in start values)" : device.version;
}

std::string signed_percent(double predicted, double measured) {
    return fmt::format("{:+.1f} %", 100 * (predicted / measured - 1));
}

}  // namespace

std::string one_cell(const std::vector<std::string>& of_all, const std::vector<std::string>& of_row) {
    std::string text;
    for (const auto* warnings : {&of_all, &of_row}) {
        for (const std::string& warning : *warnings) text += (text.empty() ? "" : "; ") + warning;
    }
    return text;
}

Coverage lowest_coverage(const std::vector<PredictionRow>& rows) {
    Coverage lowest;
    for (const PredictionRow& row : rows) {
        lowest.nodes = std::min(lowest.nodes, row.prediction.coverage.nodes);
        lowest.flops = std::min(lowest.flops, row.prediction.coverage.flops);
        lowest.time = std::min(lowest.time, row.prediction.coverage.time);
    }
    return lowest;
}

std::string print_header(const PredictionReport& report, Style style) {
    std::string title =
        fmt::format("{} on {}, {}{}{}, {}", report.model, report.device.device.name, report.framework.framework,
                    report.framework.version.empty() ? "" : " ", report.framework.version, name_of(report.precision));
    for (const auto& [symbol, value] : report.dims) title += fmt::format(", {} {}", symbol, value);
    const Coverage coverage = lowest_coverage(report.rows);
    // Nobody's machine: what it says of the host is a middling one.
    const bool unknown_host = report.framework.host == "reference" && !is_cpu(report.device.device);
    return fmt::format(
        "{}\n{}\n\n", toned(escape_terminal(title), Tone::strong, style),
        escape_terminal(fmt::format(
            "host: {}{}; device profile: {} {}; modelled: {} of operators, {} of FLOPs, {} of time",
            report.framework.host, unknown_host ? " (yours is unknown: --anchor)" : "", report.device.device.slug,
            describe(report.device), percent(coverage.nodes), percent(coverage.flops), percent(coverage.time))));
}

std::string print_crossover(const CrossoverReport& report, Style style) {
    if (report.crossovers.empty()) {
        return fmt::format("crossover: none between batch 1 and {}; {} is the bottleneck throughout\n", report.largest,
                           report.bound == Bound::host ? "the framework" : "the GPU");
    }
    std::string text;
    for (const Crossover& crossover : report.crossovers) {
        constexpr std::string_view waits = "the GPU waits for the framework", ahead = "the framework runs ahead";
        text +=
            fmt::format("{} (90 % interval {} to {}): below it {}, above it {}\n",
                        toned(fmt::format("crossover: batch {}", significant(crossover.batch)), Tone::strong, style),
                        significant(crossover.low), significant(crossover.high),
                        crossover.gpu_waits_above ? ahead : waits, crossover.gpu_waits_above ? waits : ahead);
        text += fmt::format("of {} host time there:", duration(crossover.host_s));
        for (const HostCause& cause : crossover.causes) {
            text += fmt::format("{} {:.0f} % for {} {}", &cause == crossover.causes.data() ? "" : ",",
                                100 * cause.host_s / crossover.host_s, cause.operations,
                                fmt::format(fmt::runtime(cause_names[static_cast<std::size_t>(cause.kind)]),
                                            cause.operations == 1 ? "" : "s"));
        }
        text += "\n";
    }
    return text;
}

/// "interval: mostly speed of the host's CPU (± 50 %) at batch 1 to 16, …": neighbouring rows with one cause as one.
std::string print_widest_components(const PredictionReport& report) {
    std::string text;
    for (std::size_t first = 0, end = 0; first < report.rows.size(); first = end) {
        const Prediction& p = report.rows[first].prediction;
        double widest = 0;
        for (end = first; end < report.rows.size(); ++end) {
            const Prediction& next = report.rows[end].prediction;
            if (next.widest_component != p.widest_component) break;
            widest = std::max(widest, next.widest_component_stddev);
        }
        if (p.widest_component.empty()) continue;
        text += fmt::format("{}{} (± {:.0f} %)", text.empty() ? "interval: mostly " : ", ", p.widest_component,
                            100 * std::expm1(equations::normal_90 * widest));
        const auto& from = report.rows[first].batch;
        const auto& to = report.rows[end - 1].batch;
        if (report.rows.size() == end - first || !from || !to) continue;
        text += from == to ? fmt::format(" at batch {}", *from) : fmt::format(" at batch {} to {}", *from, *to);
    }
    return text.empty() ? text : text + "\n";
}

std::string to_table(const PredictionReport& report, Style style) {
    const auto has_measured_device = [](const PredictionRow& row) { return row.measured && row.measured->device_s; };
    const bool measured =
        std::any_of(report.rows.begin(), report.rows.end(), [](const auto& row) { return row.measured; });
    const bool measured_device = std::any_of(report.rows.begin(), report.rows.end(), has_measured_device);
    std::vector<Table::Column> columns{{"batch"},     {"latency ms"}, {"90 % interval"},      {"host ms"},
                                       {"device ms"}, {"max ms"},     {"bound", Align::left}, {"overhead"},
                                       {"SM active"}, {"items/s"}};
    const bool branches =
        std::any_of(report.rows.begin(), report.rows.end(), [](const auto& row) { return row.branches; });
    const bool memory = std::any_of(report.rows.begin(), report.rows.end(), [](const auto& row) { return row.memory; });
    if (memory) columns.push_back({"memory"});
    if (branches) columns.push_back({"by branch ms"});
    if (measured) columns.insert(columns.end(), {{"measured ms"}, {"error"}});
    if (measured_device) columns.insert(columns.end(), {{"measured device ms"}, {"error"}});
    Table table(std::move(columns));
    for (const PredictionRow& row : report.rows) {
        const Prediction& p = row.prediction;
        std::vector<Cell> cells{{row.batch ? std::to_string(*row.batch) : "fixed"},
                                {milliseconds(p.latency_s), Tone::strong},
                                {fmt::format("{} to {}", milliseconds(p.low_s), milliseconds(p.high_s))},
                                {milliseconds(p.host_s)},
                                {milliseconds(p.device_s)},
                                {milliseconds(p.closed_form_s)},
                                {std::string(name_of(p.bound)), p.bound == Bound::host ? Tone::warning : Tone::plain},
                                {percent(equations::framework_overhead(p.latency_s, p.device_s))},
                                {percent(p.sm_active)},
                                {row.batch ? significant(static_cast<double>(*row.batch) / p.latency_s) : ""}};
        if (memory) {
            const bool fits = !row.memory || row.memory->fits();
            cells.push_back({row.memory ? byte_size(row.memory->total_bytes()) + (fits ? "" : ", does not fit") : "",
                             fits ? Tone::plain : Tone::warning});
        }
        if (branches) {
            cells.push_back({row.branches ? fmt::format("{} to {}", milliseconds(row.branches->min_s),
                                                        milliseconds(row.branches->max_s))
                                          : ""});
        }
        if (measured) {
            cells.push_back({row.measured ? milliseconds(row.measured->latency_s) : ""});
            cells.push_back({row.measured ? signed_percent(p.latency_s, row.measured->latency_s) : ""});
        }
        if (measured_device) {
            cells.push_back({has_measured_device(row) ? milliseconds(*row.measured->device_s) : ""});
            cells.push_back({has_measured_device(row) ? signed_percent(p.device_s, *row.measured->device_s) : ""});
        }
        table.add(std::move(cells));
    }
    std::string text = print_header(report, style) + table.print(style) + "\n";
    text +=
        "latency: one of many runs back to back (--synchronized: by itself); max: the larger of host and device\n"
        "overhead: share of the latency that the GPU waits; SM active: share in which an SM holds work (estimate)\n";
    text += print_widest_components(report);
    if (report.crossover) text += print_crossover(*report.crossover, style);
    if (report.anchors) text += print_anchors(*report.anchors);
    return text;
}

std::string print_anchors(const AnchorPlan& plan) {
    std::string text = fmt::format("latencies are known to within {} (90 %)", percent(plan.half_width));
    if (plan.runs.empty()) return text + "; no run of this model would narrow that by a tenth\n";
    text += "; worth measuring, for --anchor:";
    for (const SuggestedAnchor& run : plan.runs) {
        text += fmt::format("{} batch {} (then {})", &run == plan.runs.data() ? "" : ",", run.batch,
                            percent(run.half_width));
    }
    return text + "\n";
}

std::string to_csv(const PredictionReport& report) {
    std::string text;
    append_csv_row(text, std::vector<std::string>{"model",
                                                  "device",
                                                  "device_profile",
                                                  "framework",
                                                  "framework_version",
                                                  "host",
                                                  "precision",
                                                  "dims",
                                                  "batch",
                                                  "latency_s",
                                                  "low_s",
                                                  "high_s",
                                                  "host_s",
                                                  "device_s",
                                                  "closed_form_s",
                                                  "bound",
                                                  "kernels",
                                                  "coverage_nodes",
                                                  "coverage_flops",
                                                  "coverage_time",
                                                  "framework_overhead",
                                                  "sm_active",
                                                  "warp_occupancy",
                                                  "memory_bytes",
                                                  "fits",
                                                  "warnings"});
    std::string dims;
    for (const auto& [symbol, value] : report.dims)
        dims += fmt::format("{}{}={}", dims.empty() ? "" : " ", symbol, value);
    for (const PredictionRow& row : report.rows) {
        const Prediction& p = row.prediction;
        std::vector<std::string> cells{report.model,
                                       report.device.device.slug,
                                       report.device.version,
                                       report.framework.framework,
                                       report.framework.version,
                                       report.framework.host,
                                       std::string(name_of(report.precision)),
                                       dims,
                                       row.batch ? std::to_string(*row.batch) : ""};
        for (const double seconds : {p.latency_s, p.low_s, p.high_s, p.host_s, p.device_s, p.closed_form_s}) {
            cells.push_back(format_number(seconds));
        }
        cells.emplace_back(name_of(p.bound));
        cells.push_back(std::to_string(p.kernels));
        for (const double share :
             {p.coverage.nodes, p.coverage.flops, p.coverage.time,
              equations::framework_overhead(p.latency_s, p.device_s), p.sm_active, p.warp_occupancy}) {
            cells.push_back(format_number(share));
        }
        cells.push_back(row.memory ? format_number(row.memory->total_bytes()) : "");
        cells.push_back(row.memory ? (row.memory->fits() ? "1" : "0") : "");
        cells.push_back(one_cell(report.warnings, p.warnings));
        append_csv_row(text, cells);
    }
    return text;
}

}  // namespace ftax::report
