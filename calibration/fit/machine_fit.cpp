#include "calibration/fit/machine_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "calibration/fit/log_fit.hpp"
#include "calibration/fit/model_fit.hpp"
#include "calibration/fit/operator_profile.hpp"
#include "ftax/error.hpp"
#include "predictors/host/host_costs.hpp"

namespace ftax::fit {
namespace {

constexpr std::size_t fewest_device_rows = 30;
constexpr std::size_t fewest_host_rows = 8;
constexpr int held_at_start = -1;
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

/// Values of all kernel parameters in the order of visit_parameters, and which of them the fit moves.
struct DeviceUnknowns {
    std::vector<double> held;
    std::vector<int> place;  ///< in the block, or held_at_start
    LogFit::Block block;
};

DeviceUnknowns device_unknowns(const DeviceSpec& device, const DeviceProfileFile& start) {
    KernelParameters parameters = kernel_parameters(compose(start, device));
    DeviceUnknowns unknowns;
    visit_parameters(parameters, device, [&](std::string_view name, double& value, const ParameterSpec& spec) {
        unknowns.held.push_back(value);
        if (!is_own(name, spec)) return unknowns.place.push_back(held_at_start);
        unknowns.place.push_back(static_cast<int>(unknowns.block.size()));
        Unknown u = unknown(std::string(name), spec);
        u.value = value;
        u.prior_log_stddev *= prior_scale;
        unknowns.block.push_back(std::move(u));
    });
    return unknowns;
}

/// Device time of one row as a function of the device's own parameters.
struct DeviceTime {
    const DeviceRow* row;
    const DeviceSpec* device;
    const DeviceUnknowns* unknowns;

    double operator()(double const* const* blocks) const {
        KernelParameters parameters;
        std::size_t next = 0;
        visit_parameters(parameters, *device, [&](std::string_view, double& value, const ParameterSpec&) {
            const int place = unknowns->place[next];
            value = place == held_at_start ? unknowns->held[next] : blocks[0][place];
            ++next;
        });
        return device_seconds(*row, KernelModels(*device, parameters));
    }
};

struct Solved {
    LogFit::Block block;
    FitSummary summary;
};

/// Fits one block of unknowns to rows; `model(row)` is the functor of a row, `measured(row)` its time.
template <class Row, class Model, class Measured>
Solved solve(const std::vector<const Row*>& rows, const LogFit::Block& block, const FitOptions& options, Model model,
             Measured measured) {
    LogFit problem(options);
    const std::vector<std::size_t> blocks{problem.add_block(block)};
    for (const Row* row : rows) problem.add_row(model(*row), measured(*row), blocks);
    const FitSummary summary = problem.solve();
    return {problem.block(0), summary};
}

struct Errors {
    std::vector<ErrorSummary> in_fit;
    ErrorSummary left_out;
};

/// Fits all rows, then once more without each group, and compares.
template <class Row, class Group, class Model, class Measured>
Errors errors_of(const std::vector<const Row*>& rows, const Solved& all, const LogFit::Block& start, FitOptions options,
                 Group group, Model model, Measured measured) {
    const auto error = [&](const LogFit::Block& block, const Row& row) {
        std::vector<double> values;
        for (const Unknown& u : block) values.push_back(u.value);
        const double* const blocks[] = {values.data()};
        return std::log(model(row)(blocks) / measured(row));
    };
    std::map<std::string, std::vector<double>> in_fit;
    std::vector<double> every, left_out;
    for (const Row* row : rows) {
        in_fit[group(*row)].push_back(error(all.block, *row));
        every.push_back(in_fit[group(*row)].back());
    }
    options.starts = 1;
    for (const auto& [name, unused] : in_fit) {
        std::vector<const Row*> others;
        std::copy_if(rows.begin(), rows.end(), std::back_inserter(others),
                     [&, &name = name](const Row* r) { return group(*r) != name; });
        if (others.empty()) continue;
        const Solved without = solve(others, start, options, model, measured);
        for (const Row* row : rows) {
            if (group(*row) == name) left_out.push_back(error(without.block, *row));
        }
    }
    Errors result;
    for (auto& [name, errors] : in_fit) result.in_fit.push_back(summarize(name, std::move(errors)));
    result.in_fit.push_back(summarize("all", std::move(every)));
    if (!left_out.empty()) result.left_out = summarize("left out", std::move(left_out));
    return result;
}

template <class Row>
std::vector<const Row*> usable(std::span<const Row> rows, double Row::*seconds, std::size_t fewest, const char* what) {
    std::vector<const Row*> result;
    for (const Row& row : rows) {
        if (std::isfinite(row.*seconds) && row.*seconds > 0) result.push_back(&row);
    }
    if (result.size() < fewest) {
        throw Error(ErrorCode::usage,
                    fmt::format("{} usable rows are too few to fit {}, it takes {}", result.size(), what, fewest));
    }
    return result;
}

std::string source_of(std::size_t rows, const char* what, const ErrorSummary& left_out) {
    return fmt::format("fitted: {} {} measured on this machine; MAPE {:.1f} % on those left out", rows, what,
                       100 * left_out.mean);
}

}  // namespace

GpuFit fit_gpu(std::span<const DeviceRow> rows, const DeviceSpec& device, const DeviceProfileFile& start,
               const FitOptions& options) {
    const std::vector<const DeviceRow*> used = usable(rows, &DeviceRow::latency_s, fewest_device_rows, "a GPU");
    const DeviceUnknowns unknowns = device_unknowns(device, start);
    const auto model = [&](const DeviceRow& row) { return DeviceTime{&row, &device, &unknowns}; };
    const auto measured = [](const DeviceRow& row) { return row.latency_s; };
    const Solved solved = solve(used, unknowns.block, options, model, measured);
    Errors errors = errors_of(
        used, solved, unknowns.block, options, [](const DeviceRow& row) { return row.group; }, model, measured);

    GpuFit fit{start, solved.summary, std::move(errors.in_fit), errors.left_out};
    const std::string source = source_of(used.size(), "device times", fit.left_out);
    for (const Unknown& u : solved.block) {
        if (is_unseen(u)) continue;
        const ScopedParameter fitted{{u.name, u.value, u.relative_stddev, source}, ParameterScope::device, device.slug};
        replace_parameters(fit.profile, {&fitted, 1});
    }
    std::vector<std::string>& fitted_on = fit.profile.fitted_on;
    if (std::find(fitted_on.begin(), fitted_on.end(), device.slug) == fitted_on.end()) fitted_on.push_back(device.slug);
    std::sort(fitted_on.begin(), fitted_on.end());
    return fit;
}

std::optional<double> kernel_gap_s(const RuntimeQuantities& runtime) {
    const auto queued = runtime.find("kernel_in_stream"), alone = runtime.find("empty_kernel");
    if (queued != runtime.end() && alone != runtime.end() && queued->second > alone->second)
        return queued->second - alone->second;
    const auto recorded = runtime.find("kernel_gap");
    return recorded == runtime.end() ? std::nullopt : std::optional(recorded->second);
}

std::vector<Parameter> runtime_parameters(const RuntimeQuantities& runtime) {
    std::vector<Parameter> parameters;
    const auto add = [&](const char* name, double value) {
        const ParameterSpec spec = *host_parameter_spec({}, name);
        parameters.push_back(
            {name, std::clamp(value, spec.lower, spec.upper), runtime_spread, "measured: ftax_cuda_probe"});
    };
    if (const auto latency = runtime.find("launch_latency"); latency != runtime.end())
        add("launch_latency_s", latency->second);
    if (const auto gap_s = kernel_gap_s(runtime)) add("kernel_gap_s", *gap_s);
    return parameters;
}

HostFit fit_machine_host(std::span<const HostRow> rows, const FrameworkProfile& start, const std::string& host,
                         const RuntimeQuantities& runtime, const FitOptions& options) {
    const std::vector<const HostRow*> used = usable(rows, &HostRow::measured_s, fewest_host_rows, "a host");
    const FrameworkModel& framework = model_of(start);
    const auto with_value = [&](const std::string& name, double prior_log_stddev) {
        Unknown u = unknown(name, *host_parameter_spec(framework, name));
        u.value = std::clamp(host_parameter(start, name), u.lower, u.upper);
        u.prior_log_stddev = prior_log_stddev;
        return u;
    };
    // The scale goes where the machine is; what its kinds differ in beyond that, the rows must show.
    std::vector<HostRow> counted;
    for (const HostRow* row : used) counted.push_back(*row);
    const HostUnknowns unknowns(
        framework, counted, {with_value("host.scale", 1.5)},
        [&](const std::string& name, bool is_half) { return with_value(name, is_half ? 0.15 : 0.5); });
    const double blas_call_s = host_parameter(start, "host.blas_call");
    const auto model = [&](const HostRow& row) {
        return [&row, &unknowns, blas_call_s](double const* const* blocks) {
            return blocks[0][0] * unknowns.seconds(row, blocks[0]) + row.calls * blas_call_s;
        };
    };
    const auto measured = [](const HostRow& row) { return row.measured_s; };
    const Solved solved = solve(used, unknowns.block, options, model, measured);
    Errors errors = errors_of(
        used, solved, unknowns.block, options, [](const HostRow& row) { return row.model; }, model, measured);

    HostFit fit{start, solved.summary, std::move(errors.in_fit), errors.left_out};
    fit.profile.version = "measured";
    fit.profile.host = host;
    fit.profile.warnings.clear();
    const std::string source = source_of(used.size(), "host times", fit.left_out);
    for (const Unknown& u : solved.block) {
        std::erase_if(fit.profile.parameters, [&](const Parameter& p) { return p.name == u.name; });
        const double spread =
            u.name == "host.scale" ? std::max(host_repeatability, fit.left_out.mean) : u.relative_stddev;
        fit.profile.parameters.push_back({u.name, u.value, spread, source});
    }
    for (Parameter& measured_here : runtime_parameters(runtime)) {
        std::erase_if(fit.profile.parameters, [&](const Parameter& p) { return p.name == measured_here.name; });
        fit.profile.parameters.push_back(std::move(measured_here));
    }
    std::sort(fit.profile.parameters.begin(), fit.profile.parameters.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return fit;
}

}  // namespace ftax::fit
