#include "src/report/prediction_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>

#include "ftax/equations.hpp"
#include "graphs/files/escape.hpp"
#include "src/report/launch_report.hpp"
#include "src/report/quantities.hpp"

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

/// "+3.1 %"
Value error_value(double predicted, double measured) {
    return {predicted / measured - 1, fmt::format("{:+.1f} %", 100 * (predicted / measured - 1))};
}

/// The first crossover, with the others in `further`.
Json crossovers_json(const CrossoverReport& report) {
    Json json = {{"searched_to", report.largest}, {"batch", nullptr}};
    if (report.crossovers.empty()) {
        json["bound"] = name_of(report.bound);
        return json;
    }
    Json all = crossover_columns().json_rows(report.crossovers, "batch low high gpu_waits host_s causes");
    json.update(all[0]);
    all.erase(0);
    json["further"] = std::move(all);
    return json;
}

Json anchors_json(const AnchorPlan& plan) {
    Json json = {{"half_width", plan.half_width}, {"runs", Json::array()}};
    for (const SuggestedAnchor& run : plan.runs)
        json["runs"].push_back({{"batch", run.batch}, {"half_width", run.half_width}});
    return json;
}

/// "host at batch 1 to 16, compute at batch 32": neighbouring rows with one key as one, with what `text` says of them.
template <class Key, class Text>
std::string by_batches(const std::vector<PredictionRow>& rows, Key key, Text text) {
    std::vector<std::string> parts;
    for (auto first = rows.begin(), end = first; first != rows.end(); first = end) {
        end = std::find_if(first, rows.end(), [&](const PredictionRow& row) {
            return std::invoke(key, row.prediction) != std::invoke(key, first->prediction);
        });
        std::string part = text(std::span(first, end));
        if (part.empty()) continue;
        const auto &from = first->batch, &to = std::prev(end)->batch;
        if (from && to && (first != rows.begin() || end != rows.end()))
            part += from == to ? fmt::format(" at batch {}", *from) : fmt::format(" at batch {} to {}", *from, *to);
        parts.push_back(std::move(part));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

/// "interval: mostly speed of the host's CPU (± 50 %) at batch 1 to 16, …"
std::string print_widest_components(const PredictionReport& report) {
    using Rows = std::span<const PredictionRow>;
    const std::string text = by_batches(report.rows, &Prediction::widest_component, [](Rows rows) -> std::string {
        double widest = 0;
        for (const PredictionRow& row : rows) widest = std::max(widest, row.prediction.widest_component_stddev);
        const std::string_view name = rows.front().prediction.widest_component;
        return name.empty() ? ""
                            : fmt::format("{} (± {:.0f} %)", name, 100 * std::expm1(equations::normal_90 * widest));
    });
    return text.empty() ? "" : "interval: mostly " + text + "\n";
}

}  // namespace

std::string print_explained(const Explanation& explained) {
    std::vector<std::string> parts;
    for (const auto& [name, stddev] : explained.interval) {
        const double percent = 100 * std::expm1(equations::normal_90 * stddev);
        if (percent >= 1) parts.push_back(fmt::format("± {:.0f} % {}", percent, name));
    }
    return fmt::format("interval at the last batch: {}{}{}", fmt::join(parts, ", "),
                       explained.evidence.empty() ? "" : "; rests on: ", explained.evidence);
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
    // No specific machine: the reference host is a typical one.
    const bool unknown_host = report.framework.host == "reference" && !is_cpu(report.device.device);
    return fmt::format("{}\n{}\n\n", toned(escape_terminal(title), Tone::strong, style),
                       escape_terminal(fmt::format(
                           "host: {}{}; device profile: {} {}; modelled: {} of operators, {} of FLOPs, {} of time",
                           report.framework.assumed.empty() ? report.framework.host : report.framework.assumed,
                           unknown_host ? " (calibrate yours with --anchor)" : "", report.device.device.slug,
                           report.device.version.empty() ? "none (built-in initial values)" : report.device.version,
                           percent(coverage.nodes), percent(coverage.flops), percent(coverage.time))));
}

std::string print_crossover(const CrossoverReport& report, Style style) {
    if (report.crossovers.empty()) {
        return fmt::format("crossover: none between batch 1 and {}; {} is the bottleneck throughout\n", report.largest,
                           report.bound == Bound::host ? "the framework" : "the device");
    }
    std::string text;
    for (const Crossover& crossover : report.crossovers) {
        constexpr std::string_view waits = "the device waits for the framework", ahead = "the framework runs ahead";
        text +=
            fmt::format("{} (90 % interval {} to {}): below it {}, above it {}\n",
                        toned(fmt::format("crossover: batch {}", significant(crossover.batch)), Tone::strong, style),
                        significant(crossover.low), significant(crossover.high),
                        crossover.gpu_waits_above ? ahead : waits, crossover.gpu_waits_above ? waits : ahead);
        text += fmt::format("of {} host time there:", duration(crossover.host_s));
        for (const HostCause& cause : crossover.causes)
            text += fmt::format("{} {:.0f} % for {} {}", &cause == crossover.causes.data() ? "" : ",",
                                100 * cause.host_s / crossover.host_s, cause.operations,
                                fmt::format(fmt::runtime(cause_names[static_cast<std::size_t>(cause.kind)]),
                                            cause.operations == 1 ? "" : "s"));
        text += "\n";
    }
    return text;
}

Columns<PredictionRow> prediction_row_columns(const PredictionReport& report) {
    using Row = PredictionRow;
    double longest_s = 0;
    for (const Row& row : report.rows)
        longest_s = std::max({longest_s, row.prediction.host_s, row.prediction.device_s});
    const Columns<Measured> measured{
        {"measured_latency_s", "measured", Unit::milliseconds, "as given", &Measured::latency_s},
        {"measured_device_s", "measured device", Unit::milliseconds, "as given", &Measured::device_s}};
    const Columns<LatencyRange> branches{
        {"branches", "by branch ms", Unit::plain,
         [](const LatencyRange& r) { return range_value(r.min_s, r.max_s, milliseconds); }},
        {"branches_s", "", Unit::text, "latency over the branches of data-dependent Ifs", [](const LatencyRange& r) {
             return Json{{"min", r.min_s}, {"max", r.max_s}};
         }}};
    return Columns<Row>{
        {"model", "model", Unit::text, [&](const Row&) { return report.model; }},
        {"device", "device", Unit::text, [&](const Row&) { return report.device.device.slug; }},
        {"device_profile", "profile", Unit::text, [&](const Row&) { return report.device.version; }},
        {"framework", "framework", Unit::text, [&](const Row&) { return report.framework.framework; }},
        {"framework_version", "version", Unit::text, [&](const Row&) { return report.framework.version; }},
        {"host", "host", Unit::text, [&](const Row&) { return report.framework.host; }},
        {"precision", "precision", Unit::text, [&](const Row&) { return report.precision; }},
        {"dims", "dimensions", Unit::text,
         [&](const Row&) {
             std::string dims;
             for (const auto& [symbol, value] : report.dims)
                 dims += fmt::format("{}{}={}", dims.empty() ? "" : " ", symbol, value);
             return dims;
         }},
        {"batch", "batch", Unit::plain, "null if the model fixes it",
         [](const Row& row) { return batch_value(row.batch); }},
        {"items_per_s", "items/s", Unit::significant,
         [](const Row& row) {
             return row.batch ? Value(static_cast<double>(*row.batch) / row.prediction.latency_s) : Value();
         }},
        {"error", "error", Unit::plain,
         [](const Row& row) {
             return row.measured ? error_value(row.prediction.latency_s, row.measured->latency_s) : Value();
         }},
        {"device_error", "error", Unit::plain,
         [](const Row& row) {
             const bool known = row.measured && row.measured->device_s;
             return known ? error_value(row.prediction.device_s, *row.measured->device_s) : Value();
         }},
        {"all_warnings", "", Unit::text,
         [&](const Row& row) { return joined(report.warnings, row.prediction.warnings); }},
        {"parts", "", Unit::text, "all runs of each network of a [pipeline](using.md#diffusers-folders)",
         [](const Row& row) {
             return row.parts.empty() ? Value()
                                      : share_columns("", row.parts).json_rows(row.parts, "name host_s device_s");
         }},
        {"bars", "host above device", Unit::bars,
         [longest_s](const Row& row) {
             return host_and_device_bars(row.prediction.host_s, row.prediction.device_s, longest_s);
         }}}
        .including(measured, &Row::measured)
        .including(branches, &Row::branches)
        .including(prediction_columns(), &Row::prediction)
        .including(memory_columns(), &Row::memory);
}

std::string verdict_of(const PredictionReport& report) {
    if (!report.measured.empty()) return report.measured;
    const auto at = [](const PredictionRow& row) {
        return duration(row.prediction.latency_s) + (row.batch ? fmt::format(" at batch {}", *row.batch) : "") +
               (row.memory && !row.memory->fits() ? ", which does not fit" : "");
    };
    const auto bound = [](auto rows) { return std::string(name_of(rows.front().prediction.bound)); };
    return fmt::format("{} on {}, {} {}: {}{}, bound by {}", report.model, report.device.device.slug,
                       report.framework.framework, report.framework.version, at(report.rows.front()),
                       report.rows.size() > 1 ? " to " + at(report.rows.back()) : "",
                       by_batches(report.rows, &Prediction::bound, bound));
}

std::string to_table(const PredictionReport& report, Style style) {
    std::string text = print_verdict(verdict_of(report), style);
    if (!report.advice.empty())
        text += advice_grid(report, "name latency_s interval speed bound code").print(style) + "\n";
    text += print_header(report, style) +
            prediction_row_columns(report).print(
                report.rows,
                "batch latency_s interval evidence host_s device_s closed_form_s bound framework_overhead "
                "sm_active items_per_s ?total_and_fits ?branches ?measured_latency_s ?error "
                "?measured_device_s ?device_error bars",
                style) +
            "\n";
    if (const std::vector<Share>& parts = report.rows.back().parts; !parts.empty())
        text +=
            share_columns("part (last batch)", parts).print(parts, "name kernels host_s device_s bars", style) + "\n";
    text +=
        "latency: one of many runs back to back (--synchronized: by itself); max: the larger of host and device\n"
        "overhead: share of the latency during which the device waits; SM active: share during which an SM holds work "
        "(estimate)\n";
    if (report.advice.empty() && report.measured.empty()) text += "what to change: --advise\n";
    text += print_widest_components(report);
    if (report.explained) text += print_explained(*report.explained) + "\n";
    if (report.crossover) text += print_crossover(*report.crossover, style);
    if (!report.diagnosis.empty()) text += "\n" + diagnosis_grid(report, "share latency_s sentence").print(style);
    if (report.anchors) text += print_anchors(*report.anchors) + "\n";
    return text;
}

Grid diagnosis_grid(const PredictionReport& report, std::string_view keys, double least_share) {
    using Row = Hypothesis;
    std::vector<Row> likely = report.diagnosis;
    std::erase_if(likely, [&](const Row& row) { return row.share < least_share; });
    const auto predicted = [](const Row& row) {
        std::string text;
        for (const double latency_s : row.latency_s) text += (text.empty() ? "" : ", ") + duration(latency_s);
        return Value(row.latency_s, text);
    };
    return Columns<Row>{
        {"name", "", Unit::text, &Row::name},
        {"sentence", "what may explain it", Unit::text, "the cause in words", &Row::sentence},
        {"latency_s", "predicted then", Unit::text, "latencies under it, one for each measured row", predicted},
        {"share", "probability", Unit::share, "share of the probability", &Row::share}}
        .select(likely, keys);
}

Grid advice_grid(const PredictionReport& report, std::string_view keys) {
    using Row = Advice;
    const auto interval = [](const Row& row) { return range_value(row.low_s, row.high_s, milliseconds); };
    const auto batch = report.rows.front().batch;
    const auto speed = [](const Row& row) { return Value(row.speed, significant(row.speed) + "x", Tone::strong); };
    return Columns<Row>{
        {"name", batch ? fmt::format("what next at batch {}", *batch) : "what next", Unit::text, &Row::name},
        {"code", "how", Unit::text, "what makes the change", &Row::code},
        {"latency_s", "latency", Unit::milliseconds, &Row::latency_s},
        {"low_s", "from", Unit::milliseconds, &Row::low_s},
        {"high_s", "to", Unit::milliseconds, &Row::high_s},
        {"interval", "90 % interval", Unit::plain, interval},
        {"speed", "speed", Unit::plain, "items per second relative to the run", speed},
        {"bound", "bound", Unit::text, &Row::bound}}
        .select(report.advice, keys);
}

std::string print_anchors(const AnchorPlan& plan) {
    std::string text = fmt::format("latencies are known to within {} (90 %)", percent(plan.half_width));
    if (plan.runs.empty()) return text + "; no further run would narrow that by a tenth";
    text += "; worth measuring, for --anchor:";
    for (const SuggestedAnchor& run : plan.runs)
        text += fmt::format("{} {} (then {})", &run == plan.runs.data() ? "" : ",", escape_terminal(run.label),
                            percent(run.half_width));
    return text;
}

std::string to_csv(const PredictionReport& report) {
    return prediction_row_columns(report).csv(
        report.rows,
        "model device device_profile framework framework_version host precision dims batch latency_s low_s "
        "high_s host_s device_s closed_form_s bound kernels coverage_nodes coverage_flops coverage_time "
        "framework_overhead sm_active warp_occupancy power_w energy_j evidence memory_bytes=total_bytes fits "
        "warnings=all_warnings");
}

std::string to_json(const PredictionReport& report) {
    Json json = run_json(report);
    json["dims"] = report.dims;
    json["verdict"] = verdict_of(report);
    json["predictions"] = prediction_row_columns(report).json_rows(
        report.rows,
        "batch latency_s low_s high_s host_s device_s closed_form_s widest_component.name=widest_component "
        "widest_component.stddev=widest_component_stddev evidence bound kernels framework_overhead sm_active "
        "warp_occupancy power_w energy_j coverage.nodes=coverage_nodes coverage.flops=coverage_flops "
        "coverage.time=coverage_time warnings memory fits branches_s measured_latency_s measured_device_s parts");
    if (report.crossover) json["crossover"] = crossovers_json(*report.crossover);
    if (report.anchors) json["suggested_anchors"] = anchors_json(*report.anchors);
    if (!report.measured.empty()) json["measured"] = report.measured;
    if (!report.diagnosis.empty()) json["diagnosis"] = diagnosis_grid(report, "", 0).json();
    if (!report.advice.empty())
        json["advice"] = advice_grid(report, "name code latency_s low_s high_s speed bound").json();
    if (report.explained) {
        for (const auto& [name, stddev] : report.explained->interval)
            json["interval"].push_back({{"name", name}, {"stddev", stddev}});
        json["nearest_rows"] = report.explained->evidence;
    }
    return document(std::move(json), report.warnings);
}

}  // namespace ftax::report
