#include <cmath>
#include <string>
#include <utility>

#include "calibration/fit/operator_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::fit {
namespace {

using kernels::ConvAlgorithm;
using kernels::ConvParameters;

enum HostUnknown : std::size_t { host_start, host_slope, host_curvature };

/// The first shared unknown is the launch share.
double latency_s(const OperatorRow& row, bool scored, ScopedValues values, double power_control_time_s) {
    const auto& shape = std::get<kernels::ConvShape>(row.shape);
    const double launch_share = *values.shared++;
    const auto rates = take_rates(*row.device, MathPath::fp32, values);
    const auto p = take<ConvParameters>(values);
    const auto plan = row.algorithm && !scored ? kernels::convolution::plan_algorithm(
                                                     *row.algorithm, kernels::conv_counts(shape), shape, rates, p)
                                               : kernels::plan(shape, rates, p);
    const double host_s =
        conv_host_s(row.order, values.host[host_start], values.host[host_slope], values.host[host_curvature]);
    return operator_latency_s(host_s, launch_share, kernels::within_power(plan, power_control_time_s));
}

}  // namespace

FitReport siblings_report(std::span<const OperatorRow> rows, std::span<const FitReport> earlier) {
    std::map<std::string, const DeviceSpec*> devices;
    for (const OperatorRow& row : rows) {
        if (row.of == RowClass::conv) devices[row.device->slug] = row.device;
    }
    FitReport report{.kernel_class = "siblings", .converged = true};
    for (const auto& [slug, device] : devices) {
        for (const std::string name : {"clock.fp32", "bandwidth"}) {
            double log_sum = 0, count = 0;
            bool known = false;
            for (const FitReport& fitted : earlier) {
                for (const ScopedParameter& p : fitted.parameters) {
                    if (p.scope != ParameterScope::device || p.parameter.name != name) continue;
                    known = known || p.key == slug;
                    if (device_spec(p.key).architecture != device->architecture) continue;
                    log_sum += std::log(p.parameter.value);
                    ++count;
                }
            }
            if (known || count == 0) continue;
            const Parameter taken{name, std::exp(log_sum / count), 0,
                                  "inherited from " + std::string(name_of(device->architecture))};
            report.parameters.push_back({taken, ParameterScope::device, slug});
        }
    }
    return report;
}

FitReport fit_conv(std::span<const OperatorRow> all, std::span<const FitReport> earlier,
                   const ClassFitOptions& options) {
    ClassFit own({.kernel_class = "conv", .rows_per_stratum = 1500, .held = operator_profile(earlier, {}).parameters},
                 all, RowClass::conv, options);
    const std::vector<const OperatorRow*>& rows = own.rows;
    ScopedFit& fit = own.fit;
    const double power_control_time_s = host_value(earlier, "operator.power_control_time_s", "").value_or(0);
    fit.shared = {declared_call("operator.conv_launch_share")};
    for (Unknown& u : declared<ConvParameters>(ParameterScope::shared)) fit.shared.push_back(std::move(u));
    fit.architecture = declared<ConvParameters>(ParameterScope::architecture);
    fit.device = [](const DeviceSpec& device) { return declared_sustained(device, {"clock.fp32", "bandwidth"}); };
    fit.host = {declared_call("operator.conv_start_s"), declared_call("operator.conv_slope_s"),
                declared_call("operator.conv_curvature_s")};
    fit.latency_s = [&](std::size_t i, const ScopedValues& values, bool scored) {
        return latency_s(*rows[i], scored, values, power_control_time_s);
    };
    fit.left_out_folds = {{"left out: datasheet, host of the others"},
                          {"left out: datasheet, host known", LeftOutFold::Device::expected, true},
                          {"left out: clock and bandwidth measured, host known", LeftOutFold::Device::refitted, true}};

    auto [report, unknowns] = solve(fit);
    if (rows.empty()) return report;
    add_parameters(fit, unknowns, report);
    add_parameters(expected_host(fit, unknowns.hosts), ParameterScope::shared, "",
                   source_of(fit) + "; mean of the hosts", report);
    for (const auto& [slug, block] : unknowns.hosts)
        add_parameters(block, ParameterScope::device, slug, source_of(fit), report, host_scale(earlier, slug));
    return report;
}

}  // namespace ftax::fit
