#include "calibration/fit/machine_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "calibration/fit/operator_fit.hpp"
#include "graphs/base/throw_error.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/kernels/cpu.hpp"

namespace ftax::fit {
namespace {

constexpr std::size_t fewest_device_rows = 30;
constexpr std::size_t fewest_host_rows = 8;  ///< fewer determine the host's scale alone
/// Rows of the machine itself outweigh what other machines showed: priors are this much wider than the models'.
constexpr double prior_scale = 3;
/// How far a measured host strays from itself between processes. Source: repetitions of framework_tax.csv, median host.
constexpr double host_repeatability = 0.03;

/// Between runs, of the probe's medians; a guess until it has run on several cards.
constexpr double runtime_spread = 0.1;

/// What a device may have of its own. Where its power limit sets its rate, that is the energy of an operation.
bool is_own(std::string_view name, const ParameterSpec& spec) {
    return spec.scope == ParameterScope::device || name == "kernel_floor_s" || name.ends_with(".energy_scale");
}

/// All kernel parameters in the order of visit_parameters; those not specific to the device are fixed.
LogFit::Block device_unknowns(const DeviceSpec& device, const DeviceProfileFile& start) {
    KernelParameters parameters = kernel_parameters(compose(start, device));
    LogFit::Block block;
    visit_parameters(parameters, device, [&](std::string_view name, double& value, const ParameterSpec& spec) {
        block.push_back(unknown(std::string(name), spec));
        block.back().value = value;
        block.back().fixed = !is_own(name, spec);
        block.back().prior_log_stddev *= prior_scale;
    });
    return block;
}

template <class Row>
std::vector<Row> usable(std::span<const Row> rows, double Row::*seconds, std::size_t fewest, const char* what) {
    std::vector<Row> result;
    std::ranges::copy_if(
        rows, std::back_inserter(result), [](double s) { return std::isfinite(s) && s > 0; }, seconds);
    if (result.size() < fewest)
        throw_error(ErrorCode::usage, "{} usable rows are too few to fit {}, it takes {}", result.size(), what, fewest);
    return result;
}

/// Which of five folds each group is left out with: a campaign has forty, and a fit without each takes minutes.
template <class Row>
std::map<std::string, std::string> folds_of(const std::vector<Row>& rows, std::string Row::*group) {
    std::map<std::string, std::string> folds;
    for (const Row& row : rows) folds[row.*group];
    int next = 0;
    for (auto& fold : folds) fold.second = fmt::format("{}", next++ % 5);
    return folds;
}

/// Fits rows of one machine, then leaves out each fold of groups.
ScopedFit machine_fit(const char* kernel_class, const FitOptions& options) {
    return {
        .kernel_class = kernel_class, .options = options, .folds_start_once = true, .left_out_folds = {{"left out"}}};
}

std::string source_of(std::size_t rows, const char* what, const FitReport& report) {
    return fmt::format("fitted: {} {} measured on this machine; MAPE {:.1f} % on those left out", rows, what,
                       100 * left_out_errors(report).mean);
}

}  // namespace

GpuFit fit_gpu(std::span<const ModelRow> rows, const DeviceSpec& device, const DeviceProfileFile& start,
               const FitOptions& options) {
    const std::vector<ModelRow> used = usable(rows, &ModelRow::latency_s, fewest_device_rows, "a GPU");
    LogFit::Block unknowns = device_unknowns(device, start);
    ScopedFit engine = machine_fit("device", options);
    engine.device = [&](const DeviceSpec&) { return unknowns; };
    const auto folds = folds_of(used, &ModelRow::group);
    for (const ModelRow& row : used)
        engine.rows.push_back(
            {.device = &device, .latency_s = row.latency_s, .group = row.group, .key = folds.at(row.group)});
    engine.latency_s = [&](std::size_t i, ScopedValues values, bool) {
        return device_seconds(used[i], KernelModels(device, take_all<KernelParameters>(values, device)));
    };
    const auto [report, fitted] = solve(engine);
    GpuFit fit{start, report};
    add_parameters(fitted.devices.at(device.slug), ParameterScope::device, device.slug,
                   source_of(used.size(), "device times", report), fit.report);
    replace_parameters(fit.profile, fit.report.parameters);
    std::vector<std::string>& fitted_on = fit.profile.fitted_on;
    if (std::ranges::find(fitted_on, device.slug) == fitted_on.end()) fitted_on.push_back(device.slug);
    std::ranges::sort(fitted_on);
    return fit;
}

std::optional<double> kernel_gap_s(const RuntimeQuantities& runtime, const FrameworkModel& framework) {
    const auto gap = runtime.find(framework.traits.host_kind == HostKind::graph_node ? "graph_gap" : "kernel_gap");
    return gap == runtime.end() ? std::nullopt : std::optional(gap->second);
}

std::vector<Parameter> runtime_parameters(const RuntimeQuantities& runtime, const FrameworkModel& framework) {
    std::vector<Parameter> parameters;
    const auto add = [&](const char* name, double value) {
        const ParameterSpec spec = *host_parameter_spec({}, name);
        parameters.push_back(
            {name, std::clamp(value, spec.lower, spec.upper), runtime_spread, "measured: ftax_cuda_probe"});
    };
    if (const auto latency = runtime.find("launch_latency"); latency != runtime.end())
        add("launch_latency_s", latency->second);
    if (const auto gap_s = kernel_gap_s(runtime, framework)) add("kernel_gap_s", *gap_s);
    return parameters;
}

HostFit fit_machine_host(std::span<const HostRow> rows, const FrameworkProfile& start, const std::string& host,
                         const RuntimeQuantities& runtime, const FitOptions& options) {
    const std::vector<HostRow> used = usable(rows, &HostRow::measured_s, 1, "a host");
    const bool scales = used.size() < fewest_host_rows;
    const FrameworkModel& framework = model_of(start);
    const auto with_value = [&](const std::string& name, double prior_log_stddev) {
        Unknown u = unknown(name, *host_parameter_spec(framework, name));
        u.value = std::clamp(host_parameter(start, name), u.lower, u.upper);
        u.prior_log_stddev = prior_log_stddev;
        u.fixed = scales && name != "host.scale";
        return u;
    };
    // The scale goes where the machine is; what its kinds differ in beyond that, the rows must show.
    const HostUnknowns unknowns(
        framework, used, {with_value("host.scale", 1.5)},
        [&](const std::string& name, bool is_half) { return with_value(name, is_half ? 0.15 : 0.5); });
    const double blas_call_s = host_parameter(start, "host.blas_call");
    ScopedFit engine = machine_fit("host", options);
    engine.host = unknowns.block;
    const auto folds = folds_of(used, &HostRow::model);
    for (const HostRow& row : used)
        engine.rows.push_back({.latency_s = row.measured_s, .group = row.model, .key = folds.at(row.model)});
    engine.latency_s = [&](std::size_t i, const ScopedValues& values, bool) {
        return values.host[0] * unknowns.seconds(used[i], values.host) + used[i].calls * blas_call_s;
    };
    const auto [report, fitted] = solve(engine);
    HostFit fit{start, report};
    fit.profile.host = host;
    fit.profile.warnings.clear();
    const std::string source = source_of(used.size(), "host times", report);
    const double strays =
        std::max({host_repeatability, left_out_errors(report).mean, scales ? host_parameter(start, "noise.host") : 0});
    for (const Unknown& u : fitted.hosts.begin()->second) {
        if (u.fixed) continue;
        const double spread = u.name == "host.scale" ? strays : u.relative_stddev;
        set_parameter(fit.profile.parameters, {u.name, u.value, spread, source});
    }
    if (!scales)
        set_parameter(fit.profile.parameters,
                      {"noise.host", std::min(host_parameter(start, "noise.host"), strays), 0, source});
    for (Parameter& measured_here : runtime_parameters(runtime, framework))
        set_parameter(fit.profile.parameters, std::move(measured_here));
    return fit;
}

namespace {

constexpr std::size_t fewest_operators = 60;  ///< of a CPU
/// Start of each host cost on a CPU. Source: order of magnitude of a dispatch without a kernel launch.
constexpr double host_start_s = 3e-6;
constexpr double host_log_stddev = 1.5;

std::vector<Parameter> parameters_of(const LogFit::Block& block, std::size_t rows) {
    std::vector<Parameter> parameters;
    for (const Unknown& u : block)
        set_parameter(parameters,
                      {u.name, u.value, u.relative_stddev, fmt::format("fitted: {} operators on this machine", rows)});
    return parameters;
}

}  // namespace

CpuRow cpu_row(const Graph& graph, const DeviceSpec& device, std::string_view framework) {
    CpuRow row;
    const Schedule schedule = lower(graph, device, PredictOptions{}, framework_model(framework).traits);
    const BoundShapes bound = bind(graph, {});
    ++row.dispatched[static_cast<std::size_t>(HostKind::forward)];
    for (const Launch& launch : schedule.launches) {
        const auto kernels = std::span(schedule.kernels).subspan(launch.first_kernel, launch.kernel_count);
        const bool launched = kernels.empty() || std::ranges::any_of(kernels, [&](const Kernel& kernel) {
                                  return is_launched(graph, kernel, bound);
                              });
        if (launched) ++row.dispatched[static_cast<std::size_t>(launch.host_kind)];
    }
    row.kernels = list_kernels(graph, schedule, bound);
    return row;
}

CpuFit fit_cpu(std::span<const CpuRow> rows, const DeviceSpec& device, std::string_view framework,
               const FitOptions& options) {
    const std::vector<CpuRow> used = usable(rows, &CpuRow::latency_s, fewest_operators, "a CPU");
    std::vector<HostKind> kinds;
    LogFit::Block host_block;
    for (int i = 0; i < host_kind_count; ++i) {
        if (std::ranges::none_of(used, [&](const CpuRow& row) { return row.dispatched[i] > 0; })) continue;
        kinds.push_back(static_cast<HostKind>(i));
        host_block.push_back({fmt::format("host.{}", name_of(kinds.back())), host_start_s, host_start_s / 100,
                              host_start_s * 100, host_log_stddev});
    }
    ScopedFit engine{.kernel_class = "cpu", .options = options, .folds = false, .host = host_block};
    engine.device = [](const DeviceSpec& cpu) { return declared<kernels::CpuParameters>({}, cpu); };
    for (const CpuRow& row : used)
        engine.rows.push_back({.device = &device, .latency_s = row.latency_s, .group = row.group});
    // The CPU dispatches and computes in turn.
    engine.latency_s = [&](std::size_t i, ScopedValues values, bool) {
        const kernels::CpuModel model{device, take_all<kernels::CpuParameters>(values, device)};
        double total = 0;
        for (const CountedKernel& kernel : used[i].kernels)
            total += kernel.count * std::visit([&](const auto& s) { return model.seconds(s); }, kernel.shape);
        for (std::size_t kind = 0; kind < kinds.size(); ++kind)
            total += used[i].dispatched[static_cast<std::size_t>(kinds[kind])] * values.host[kind];
        return total;
    };
    auto [report, unknowns] = solve(engine);
    return {{device, parameters_of(unknowns.devices.at(device.slug), used.size()), "1", {}},
            {std::string(framework),
             "measured",
             device.name,
             parameters_of(unknowns.hosts.at(device.slug), used.size()),
             {}},
            std::move(report)};
}

}  // namespace ftax::fit
