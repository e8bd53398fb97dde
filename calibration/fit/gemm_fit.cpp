#include <utility>
#include <variant>

#include "calibration/fit/operator_fit.hpp"
#include "calibration/fit/scoped_fit.hpp"
#include "predictors/kernels/gemm.hpp"
#include "predictors/operator_model.hpp"

namespace ftax::fit {
namespace {

/// The first shared unknowns belong to the call.
enum CallUnknown : std::size_t { call_power_control, call_launch_share, call_unknowns };
enum HostUnknown : std::size_t { host_linear, host_bmm };

/// Log standard deviation of the clock at which a kernel starts: the boost clock within the rounding of a datasheet,
/// before a power limit lowers it.
constexpr double clock_log_stddev = 0.02;

LogFit::Block declared_device(const DeviceSpec& device) {
    LogFit::Block block = declared_sustained(device, {"clock.fp32", "bandwidth"});
    for (Unknown& u : block) {
        if (u.name == "clock.fp32") u.prior_log_stddev = clock_log_stddev;
    }
    return block;
}

double latency_s(const OperatorRow& row, const kernels::gemm::Choice& choice, ScopedValues values) {
    const auto& shape = std::get<kernels::GemmShape>(row.shape);
    const double* call = std::exchange(values.shared, values.shared + call_unknowns);
    const auto rates = take_rates(*row.device, MathPath::fp32, values);
    const auto plan = kernels::gemm::plan_choice(shape, choice, rates, take<kernels::GemmParameters>(values));
    return operator_latency_s(values.host[shape.linear ? host_linear : host_bmm], call[call_launch_share],
                              kernels::within_power(plan, call[call_power_control]));
}

/// Frees bandwidth and the sustained clock under load: the energy of an operation where a power limit sets it.
void free_sustained_clock(const DeviceSpec& device, ScopedUnknowns& unknowns) {
    // Whether the power limit rather than the boost clock sets the rate of a stream of products.
    const double drawn_w = kernels::core_energy_per_flop_j(device) * device.peak(MathPath::fp32).value_or(0);
    const bool power_limited = drawn_w > 1.2 * kernels::arithmetic_power_w(device);
    for (Unknown& u : unknowns.shared) u.fixed = !power_limited || u.name != "gemm.energy_scale";
    for (Unknown& u : unknowns.devices.at(device.slug))
        u.fixed = u.name != "bandwidth" && (power_limited || u.name != "clock.fp32");
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
    fit.shared = {declared_call("operator.power_control_time_s"), declared_call("operator.product_launch_share")};
    for (Unknown& u : declared<kernels::GemmParameters>(ParameterScope::shared)) fit.shared.push_back(std::move(u));
    fit.architecture = declared<kernels::GemmParameters>(ParameterScope::architecture);
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
    fit.left_out_folds = {{"left out: datasheet, host of the others"},
                          {"left out: datasheet, host known", LeftOutFold::Device::expected, true},
                          {"left out: clock and bandwidth measured, host known", LeftOutFold::Device::refitted, true}};
    fit.expects_device_of_others = true;
    fit.prepare_refit = free_sustained_clock;

    auto [report, unknowns] = solve(fit);
    // A card's clock is written though rows hardly narrow its prior: convolutions keep what products showed.
    add_parameters(fit, unknowns, report, true);
    for (const auto& [slug, block] : unknowns.hosts)
        add_parameters(block, ParameterScope::device, slug, source_of(fit), report, host_scale(earlier, slug), true);
    return report;
}

}  // namespace ftax::fit
