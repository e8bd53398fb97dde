#include <cmath>
#include <string>
#include <utility>

#include "calibration/fit/operator_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "ftax/error.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::fit {
namespace {

using kernels::ConvAlgorithm;
using kernels::ConvParameters;

enum HostUnknown : std::size_t { host_start, host_slope, host_curvature };

/// The first shared unknown is the launch share.
double latency_s(const ConvRow& row, bool scored, ScopedValues values, double power_control_time_s) {
    const double launch_share = *values.shared++;
    const auto rates = take_rates(*row.device, row.path, values);
    const auto p = take<ConvParameters>(values);
    const auto plan =
        row.algorithm && !scored
            ? kernels::convolution::plan_algorithm(*row.algorithm, kernels::conv_counts(row.shape), row.shape, rates, p)
            : kernels::plan(row.shape, rates, p);
    const double host_s =
        conv_host_s(row.order, values.host[host_start], values.host[host_slope], values.host[host_curvature]);
    return operator_latency_s(host_s, launch_share, kernels::within_power(plan, power_control_time_s));
}

/// The unknown of a call with that name.
Unknown declared_call(std::string_view wanted) {
    Unknown found;
    OperatorHostParameters p;
    visit_parameters(p, [&](std::string_view name, double&, const ParameterSpec& spec) {
        if (name == wanted) found = unknown(std::string(name), spec);
    });
    return found;
}

}  // namespace

std::optional<ConvAlgorithm> conv_algorithm_from_kernel(std::string_view names) {
    const auto has = [&](std::string_view part) { return names.find(part) != names.npos; };
    if (has("winogradForwardData") || has("winogradforwarddata")) return ConvAlgorithm::winograd_nonfused;
    if (has("_winograd_")) return ConvAlgorithm::winograd_fused;
    if (has("fft")) return std::nullopt;
    if (has("scudnn") || has("convolve_sgemm")) return ConvAlgorithm::implicit_gemm;
    return std::nullopt;
}

ConvRow conv_row(const OperatorMeasurement& measured, const DeviceSpec& device, double order) {
    const auto refuse = [&](const std::string& why) {
        throw Error(ErrorCode::profile, "line " + std::to_string(measured.line) + ": " + why);
    };
    for (const std::string name : {"b", "cin", "cout", "kernel", "hw", "stride", "pad"}) {
        const auto found = measured.shape.find(name);
        if (found == measured.shape.end() || found->second < (name == "pad" ? 0 : 1))
            refuse("a conv row needs a shape with a positive " + name);
    }
    const auto shape = std::get<kernels::ConvShape>(*operator_shape(measured));
    if (shape.out_height == 0) refuse("the kernel is larger than the padded input");
    return {.device = &device,
            .shape = shape,
            .latency_s = measured.latency_s,
            .order = order,
            .algorithm = conv_algorithm_from_kernel(measured.kernel)};
}

FitReport siblings_report(std::span<const ConvRow> rows, std::span<const FitReport> earlier) {
    std::map<std::string, const DeviceSpec*> devices;
    for (const ConvRow& row : rows) devices[row.device->slug] = row.device;
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

FitReport fit_conv(std::span<const ConvRow> rows, const ConvFitOptions& options) {
    ScopedFit fit{.kernel_class = "conv",
                  .rows_name = "conv rows",
                  .options = options.fit,
                  .rows_per_stratum = options.rows_per_device,
                  .folds = options.folds,
                  .held = options.held};
    fit.shared = {declared_call("operator.conv_launch_share")};
    for (Unknown& u : declared<ConvParameters>(ParameterScope::shared)) fit.shared.push_back(std::move(u));
    fit.architecture = declared<ConvParameters>(ParameterScope::architecture);
    fit.device = [](const DeviceSpec& device) { return declared_sustained(device, {"clock.fp32", "bandwidth"}); };
    for (const char* name : {"operator.conv_start_s", "operator.conv_slope_s", "operator.conv_curvature_s"}) {
        fit.host.push_back(declared_call(name));
    }
    for (const ConvRow& row : rows) fit.rows.push_back({.device = row.device, .latency_s = row.latency_s});
    fit.latency_s = [&](std::size_t i, const ScopedValues& values, bool scored) {
        return latency_s(rows[i], scored, values, options.power_control_time_s);
    };
    fit.left_out_folds = {{"left out: datasheet, host of the others"},
                          {"left out: datasheet, host known", LeftOutFold::Device::expected, true},
                          {"left out: clock and bandwidth measured, host known", LeftOutFold::Device::refitted, true}};

    auto [report, unknowns] = solve(fit);
    if (rows.empty()) return report;
    add_parameters(fit, unknowns, report);
    add_parameters(expected_host(fit, unknowns.hosts), ParameterScope::shared, "",
                   source_of(fit) + "; mean of the hosts", report);
    for (const auto& [slug, block] : unknowns.hosts) {
        const auto scale = options.host_scales.find(slug);
        add_parameters(block, ParameterScope::device, slug, source_of(fit), report,
                       scale == options.host_scales.end() ? 1 : scale->second);
    }
    return report;
}

}  // namespace ftax::fit
