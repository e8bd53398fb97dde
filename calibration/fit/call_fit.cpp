#include <cmath>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>

#include "calibration/fit/operator_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "predictors/operator_model.hpp"

/// Fits of products and convolutions, each call timed alone: what earlier fits found for devices holds.
namespace ftax::fit {
namespace {

/// Declares what calls have on every host, then a model's ratios, and the ways in which each device is left out.
template <class Parameters>
void declare(ScopedFit& fit, std::initializer_list<std::string_view> calls) {
    for (const std::string_view name : calls) fit.shared.push_back(declared_call(name));
    for (Unknown& u : declared<Parameters>(ParameterScope::shared)) fit.shared.push_back(std::move(u));
    fit.architecture = declared<Parameters>(ParameterScope::architecture);
    fit.left_out_folds = {{"left out: datasheet, host of the others"},
                          {"left out: datasheet, host known", LeftOutFold::Device::expected, true},
                          {"left out: clock and bandwidth measured, host known", LeftOutFold::Device::refitted, true}};
}

/// What earlier fits found for a host parameter of a device's machine, of all machines where `slug` is empty.
std::optional<double> host_value(std::span<const FitReport> reports, std::string_view name, const std::string& slug) {
    for (const FitReport& report : reports)
        for (const ScopedParameter& p : report.nuisance)
            if (p.parameter.name == name && p.key == slug) return p.parameter.value;
    return std::nullopt;
}

double host_scale(std::span<const FitReport> reports, const std::string& slug) {
    return host_value(reports, "operator.host_scale", slug).value_or(1);
}

/// The first shared unknowns belong to the call.
enum CallUnknown : std::size_t { call_power_control, call_launch_share, call_unknowns };
enum ProductHost : std::size_t { host_linear, host_bmm };
enum ConvHost : std::size_t { host_start, host_slope, host_curvature };

/// Log standard deviation of the clock at which a kernel starts: the boost clock, to the rounding of a datasheet.
constexpr double clock_log_stddev = 0.02;

LogFit::Block declared_device(const DeviceSpec& device) {
    LogFit::Block block = declared_sustained(device, {"clock.fp32", "bandwidth"});
    for (Unknown& u : block)
        if (u.name == "clock.fp32") u.prior_log_stddev = clock_log_stddev;
    return block;
}

double latency_s(const OperatorRow& row, const kernels::gemm::Choice& choice, ScopedValues values) {
    const auto& shape = std::get<kernels::GemmShape>(row.shape);
    const double* call = std::exchange(values.shared, values.shared + call_unknowns);
    const auto rates = take_rates(*row.device, MathPath::fp32, values);
    const auto p = take<kernels::GemmParameters>(values);
    const auto plan = kernels::gemm::plan_choice(shape, choice, rates, p, kernels::gemm::block_rates(rates, p));
    return operator_latency_s(values.host[shape.linear ? host_linear : host_bmm], call[call_launch_share],
                              kernels::within_power(plan, call[call_power_control]));
}

/// Frees bandwidth and the sustained clock under load: the energy of an operation where a power limit sets it.
void free_sustained_clock(const DeviceSpec& device, ScopedUnknowns& unknowns) {
    // Whether the power limit rather than the boost clock sets the rate of a stream of products.
    const double drawn_w = device.chip().f32_energy_per_flop_j * device.peak(MathPath::fp32).value_or(0);
    const bool power_limited = drawn_w > 1.2 * kernels::arithmetic_power_w(device);
    for (Unknown& u : unknowns.shared) u.fixed = !power_limited || u.name != "gemm.energy_scale";
    for (Unknown& u : unknowns.devices.at(device.slug))
        u.fixed = u.name != "bandwidth" && (power_limited || u.name != "clock.fp32");
}

/// The first shared unknown is the launch share.
double latency_s(const OperatorRow& row, bool scored, ScopedValues values, double power_control_time_s) {
    const auto& shape = std::get<kernels::ConvShape>(row.shape);
    const double launch_share = *values.shared++;
    const auto rates = take_rates(*row.device, MathPath::fp32, values);
    const auto p = take<kernels::ConvParameters>(values);
    const auto plan = row.algorithm && !scored ? kernels::convolution::plan_algorithm(
                                                     *row.algorithm, kernels::conv_counts(shape), shape, rates, p)
                                               : kernels::plan(shape, rates, p);
    const double host_s =
        conv_host_s(row.order, values.host[host_start], values.host[host_slope], values.host[host_curvature]);
    return operator_latency_s(host_s, launch_share, kernels::within_power(plan, power_control_time_s));
}

}  // namespace

FitReport fit_gemm(std::span<const OperatorRow> all, std::span<const FitReport> earlier,
                   const ClassFitOptions& options) {
    ClassFit own({.kernel_class = "gemm",
                  .rows_name = "linear and bmm rows",
                  .options = {.starts = 2, .iterations = 40, .row_log_stddev = 0.1},
                  .rows_per_stratum = 1200,
                  .rounds = 3,
                  .centre = Centre::mean,
                  .held = operator_profile(earlier, {}).parameters},
                 all, RowClass::gemm, options);
    const std::vector<const OperatorRow*>& rows = own.rows;
    ScopedFit& fit = own.fit;
    declare<kernels::GemmParameters>(fit, {"operator.power_control_time_s", "operator.product_launch_share"});
    fit.device = declared_device;
    fit.host = {{"operator.dispatch_s.linear", 58e-6, 5e-6, 3e-4, 0.5},
                {"operator.dispatch_s.bmm", 35e-6, 5e-6, 3e-4, 0.5}};
    std::vector<kernels::gemm::Choice> chosen;  // the kernels that cuBLAS would take
    std::map<std::string, std::size_t> places;  // next row of each device
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const OperatorRow& row = *rows[i];
        const auto& shape = std::get<kernels::GemmShape>(row.shape);
        chosen.push_back(kernels::gemm::choose_kernel(shape, row.device->chip(), row.device->sms));
        fit.rows[i].stratum = fit.rows[i].fold_class = shape.linear ? "linear" : "bmm";
        fit.rows[i].usual = row.conditions == Conditions::usual;
        fit.rows[i].fitted = fit.rows[i].usual || row.conditions == Conditions::without_lt;
        fit.rows[i].held_out = places[row.device->slug]++ % 4 == 3;
    }
    fit.latency_s = [&](std::size_t i, const ScopedValues& values, bool scored) {
        const OperatorRow& row = *rows[i];
        return latency_s(row, row.ran && !scored ? *row.ran : chosen[i], values);
    };
    fit.held_out_fold = "a quarter held out";
    fit.usual_suffix = "without rows under other conditions";
    fit.expects_device_of_others = true;
    fit.prepare_refit = free_sustained_clock;

    auto [report, unknowns] = solve(fit);
    // A card's clock is written though rows hardly narrow its prior: convolutions keep what products showed.
    add_parameters(fit, unknowns, report, true);
    for (const auto& [slug, block] : unknowns.hosts)
        add_parameters(block, ParameterScope::device, slug, source_of(fit), report, host_scale(earlier, slug), true);
    return report;
}

FitReport siblings_report(std::span<const OperatorRow> rows, std::span<const FitReport> earlier) {
    std::map<std::string, const DeviceSpec*> devices;
    for (const OperatorRow& row : rows)
        if (row.of == RowClass::conv) devices[row.device->slug] = row.device;
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
    declare<kernels::ConvParameters>(fit, {"operator.conv_launch_share"});
    fit.device = [](const DeviceSpec& device) { return declared_sustained(device, {"clock.fp32", "bandwidth"}); };
    fit.host = {declared_call("operator.conv_start_s"), declared_call("operator.conv_slope_s"),
                declared_call("operator.conv_curvature_s")};
    fit.latency_s = [&](std::size_t i, const ScopedValues& values, bool scored) {
        return latency_s(*rows[i], scored, values, power_control_time_s);
    };

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
