#include "calibration/fit/framework_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "ftax/equations.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/statistics.hpp"
#include "graphs/base/throw_error.hpp"
#include "predictors/host/host_costs.hpp"

namespace ftax::fit {
namespace {

/// A row is host-bound when the predicted device time explains less than this share of it.
constexpr double device_share = 0.6;

/// Latency of one row on a host with this scale and second scalar.
/// Source: predictors/host/host_costs.hpp, the same sum over the launches of a schedule; equations.hpp, the closed
/// form, here smooth so that rows which the device explains bound the host's costs from above. Nothing is launched
/// before the forward call, which therefore precedes both unless the host runs ahead into the next run.
double latency_s(const HostRow& row, const HostUnknowns& shared, const double* costs, const double* host) {
    constexpr auto forward = static_cast<std::size_t>(HostKind::forward);
    const double forward_s =
        shared.cost[forward] < 0 ? 0 : shared.seconds(row, forward, costs) / row.operations[forward];
    const double before_s = row.synchronized ? host[0] * forward_s : 0;
    const double host_s = host[0] * shared.seconds(row, costs) + row.calls * host[1];
    return before_s + equations::smooth_maximum(host_s - before_s, row.device_s);
}

constexpr const char* per_pass = "host.forward";
constexpr const char* per_sequence = "host.sequence";

double seconds(const ServingRow& row, double pass_s, double sequence_s) {
    return row.fixed_s + row.passes * pass_s + row.sequences * sequence_s;
}

}  // namespace

HostUnknowns::HostUnknowns(const FrameworkModel& framework, std::span<const HostRow> rows, LogFit::Block start,
                           const std::function<Unknown(const std::string& name, bool is_half)>& declared)
    : block(std::move(start)) {
    const auto add = [&](const std::string& name, bool is_half) {
        block.push_back(declared(name, is_half));
        return static_cast<int>(block.size()) - 1;
    };
    for (std::size_t kind = 0; kind < host_kind_count; ++kind) {
        cost[kind] = half[kind] = -1;
        const auto counts = [&](bool only_half) {
            return std::ranges::any_of(
                rows, [&](const HostRow& r) { return r.operations[kind] > 0 && (r.half || !only_half); });
        };
        if (!counts(false)) continue;
        const std::string name(name_of(static_cast<HostKind>(kind)));
        cost[kind] = add("host." + name, false);
        if (counts(true) && host_parameter_spec(framework, "half." + name)) half[kind] = add("half." + name, true);
    }
}

double HostUnknowns::seconds(const HostRow& row, std::size_t kind, const double* values) const {
    if (cost[kind] < 0) return 0;
    const double cost_s = row.operations[kind] * values[cost[kind]];
    return row.half && half[kind] >= 0 ? cost_s * values[half[kind]] : cost_s;
}

double HostUnknowns::seconds(const HostRow& row, const double* values) const {
    double all_s = 0;
    for (std::size_t kind = 0; kind < host_kind_count; ++kind) all_s += seconds(row, kind, values);
    return all_s;
}

HostRow host_row(const Measurement& measurement, Predictor& predictor, const ShapeBindings& bindings) {
    std::vector<LaunchCosts> launches;
    const Prediction prediction = predictor.predict(bindings, launches);
    HostRow row{.host = fmt::format("{}|{}|{}", measurement.framework, measurement.gpu, measurement.run),
                .model = measurement.model,
                .batch = measurement.batch,
                .half = measurement.precision == Precision::fp16 || measurement.precision == Precision::bf16,
                .synchronized = predictor.synchronized(),
                .device_s = prediction.device_s,
                .measured_s = measurement.latency_s};
    for (const LaunchCosts& op : launches) {
        row.class_s[static_cast<std::size_t>(op.factor)] += op.device_s;
        if (op.host_s <= 0) continue;
        if (op.host_kind != HostKind::engine_call) row.operations[static_cast<std::size_t>(op.host_kind)] += 1;
        row.operations[static_cast<std::size_t>(HostKind::module_call)] += op.module_calls;
        row.operations[static_cast<std::size_t>(HostKind::list_part)] += op.list_parts;
        row.calls += pays_second_scalar(op) ? 1 : 0;
    }
    return row;
}

std::vector<HostRow> host_bound_rows(std::span<const HostRow> rows) {
    constexpr double flat = 1.15;
    std::map<std::tuple<std::string, std::string, std::int64_t>, std::vector<double>> measured;
    for (const HostRow& row : rows) measured[{row.host, row.model, row.batch}].push_back(row.measured_s);
    const auto rises = [&](const HostRow& row) {
        const auto doubled = measured.find({row.host, row.model, 2 * row.batch});
        return doubled != measured.end() && upper_median(doubled->second) > flat * row.measured_s;
    };
    std::map<std::tuple<std::string, std::string, std::vector<double>>, std::vector<const HostRow*>> groups;
    std::vector<HostRow> result;
    for (const HostRow& row : rows) {
        if (row.device_s > device_share * row.measured_s || rises(row)) {
            if (row.batch == 1) result.push_back(row);
            continue;
        }
        std::vector<double> work(row.operations.begin(), row.operations.end());
        work.push_back(row.calls);
        groups[{row.host, row.model, std::move(work)}].push_back(&row);
    }
    for (const auto& [key, group] : groups) {
        result.push_back(*group.front());
        result.back().measured_s = upper_median(mapped(group, &HostRow::measured_s));
    }
    return result;
}

FrameworkFit fit_framework(const std::string& framework, const std::string& version,
                           std::span<const HostRow> all_rows) {
    const std::vector<HostRow> rows = host_bound_rows(all_rows);
    if (rows.empty()) throw_error(ErrorCode::usage, "no rows of {}", framework);

    const FrameworkModel& model = framework_model(framework);
    const HostUnknowns shared(model, rows, {}, [&](const std::string& name, bool) {
        return unknown(name, *host_parameter_spec(model, name));
    });
    const std::string call(second_scalar(model));
    ScopedFit fit{.options = {.starts = 1, .row_log_stddev = 0.06},
                  .folds = false,
                  .shared = shared.block,
                  .host = {unknown("host.scale", *host_parameter_spec(model, "host.scale")),
                           unknown(call, *host_parameter_spec(model, call))}};
    for (const HostRow& row : rows) fit.rows.push_back({.latency_s = row.measured_s, .host = row.host});
    fit.latency_s = [&](std::size_t i, const ScopedValues& values, bool) {
        return latency_s(rows[i], shared, values.shared, values.host);
    };
    const auto [report, unknowns] = solve(fit);

    FrameworkFit result{.rows = rows.size(), .errors = report.folds.front().all, .converged = report.converged};
    const std::string source = fmt::format("fitted: framework_tax.csv {}, {} host-bound rows of {} hosts", framework,
                                           rows.size(), unknowns.hosts.size());
    result.reference = {.framework = framework, .version = version, .host = "reference"};
    const auto set = [&](const std::string& name, double value, double relative_stddev) {
        set_parameter(result.reference.parameters, {name, value, relative_stddev, source});
    };
    for (const Unknown& u : unknowns.shared) set(u.name, u.value, u.relative_stddev);
    std::vector<double> calls, log_scales;
    for (const auto& [host, scalars] : unknowns.hosts) {
        result.hosts[host] = {scalars[0].value, scalars[1].value};
        log_scales.push_back(std::log(scalars[0].value));
        calls.push_back(scalars[1].value);
    }
    // The reference host is the median one; the spread of the hosts is the uncertainty of an unknown host.
    const double middle = upper_median(log_scales);
    double variance = 0;
    for (const double s : log_scales) variance += (s - middle) * (s - middle);
    set("host.scale", std::exp(middle), std::max(std::sqrt(variance / static_cast<double>(log_scales.size())), 0.2));
    set(call, upper_median(calls), 0);
    return result;
}

double serving_s(const ServingRow& row, const FrameworkProfile& profile) {
    return seconds(row, host_parameter(profile, per_pass), host_parameter(profile, per_sequence));
}

FrameworkProfile fit_serving(const std::string& framework, const std::string& version, std::span<const ServingRow> rows,
                             const std::string& source) {
    const FrameworkModel& model = framework_model(framework);
    LogFit fit({});
    const std::size_t host = fit.add_block({unknown(per_pass, *host_parameter_spec(model, per_pass)),
                                            unknown(per_sequence, *host_parameter_spec(model, per_sequence))});
    for (const ServingRow& row : rows)
        fit.add_row([row](double const* const* values) { return seconds(row, values[0][0], values[0][1]); },
                    row.measured_s, {host});
    (void)fit.solve();
    FrameworkProfile profile{.framework = framework, .version = version, .host = "reference"};
    for (const Unknown& u : fit.block(host))
        profile.parameters.push_back({u.name, u.value, u.relative_stddev, "fitted: " + source});
    return profile;
}

}  // namespace ftax::fit
