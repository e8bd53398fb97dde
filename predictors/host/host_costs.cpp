#include "predictors/host/host_costs.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "ftax/precision.hpp"

namespace ftax {
namespace {

/// How far an uncalibrated host is from the reference. Source: prior of host.scale.
constexpr double unknown_scale_stddev = 0.5;

/// Returns true if the profile was fitted to a machine: neither the reference host nor that host scaled by anchor rows.
bool is_measured_host(const FrameworkProfile& profile) {
    return profile.host != "reference" && profile.host != "anchored";
}

}  // namespace

double kernel_gap_s(const FrameworkProfile& profile, const LibraryVersions& libraries, const DeviceSpec& device) {
    if (is_cpu(device)) return 0;
    const LoweringTraits& traits = model_of(profile).traits;
    const LibraryBehaviour behaviour = behaviour_of(model_of(profile), libraries, device);
    if (behaviour.leaves_no_gap) return 0;
    if (behaviour.launches_early) return host_parameter(profile, "kernel_gap_s") / 2;
    const bool fitted = is_measured_host(profile) || traits.serves_sequences;
    const bool captured = traits.host_kind == HostKind::graph_node;
    if (device.kernel_gap_s && !captured && !is_measured_host(profile)) return *device.kernel_gap_s;
    // The GPU's own work, in cycles of an A100's 1.41 GHz. Source: NVIDIA's tables of BERT, A100 to L40S.
    if (traits.engine && !is_measured_host(profile))
        return host_parameter(profile, "kernel_gap_s") * (1.41e9 / device.boost_clock_hz);
    const auto measured_s = fitted ? std::nullopt : captured ? device.chip().graph_gap_s : device.chip().stream_gap_s;
    return measured_s.value_or(host_parameter(profile, "kernel_gap_s"));
}

std::optional<ParameterSpec> host_parameter_spec(const FrameworkModel& framework, std::string_view name) {
    const ParameterSpec* const declared = declared_parameter(name);
    if (declared == nullptr) return std::nullopt;
    ParameterSpec spec = *declared;
    for (const HostPrior& prior : framework.priors) {
        if (prior.parameter != name) continue;
        spec.lower *= prior.value / spec.initial;
        spec.upper *= prior.value / spec.initial;
        spec.initial = prior.value;
        spec.prior_log_stddev = 0.2;
    }
    return spec;
}

std::string_view second_scalar(const FrameworkModel& framework) {
    return framework.traits.calls_engines ? "host.engine_call" : "host.blas_call";
}

double host_parameter(const FrameworkProfile& profile, std::string_view name) {
    if (const Parameter* fitted = find_parameter(profile.parameters, name)) return fitted->value;
    const auto spec = host_parameter_spec(model_of(profile), name);
    return spec ? spec->initial : 1.0;
}

double HostCosts::host_relative_stddev(double call_share) const {
    const double scale = (1 - call_share) * scale_relative_stddev;
    const double call = call_share * call_relative_stddev;
    const double scalars = scale * scale + call * call + 2 * correlation * scale * call;
    return std::sqrt(model_relative_stddev * model_relative_stddev + std::max(scalars, 0.0));
}

HostCosts host_costs(const FrameworkProfile& profile, Precision precision, double slowdown) {
    HostCosts costs;
    const bool half = bits_of(precision_spec(precision).storage) == 16;
    const double scale = slowdown * host_parameter(profile, "host.scale");
    for (int i = 0; i < host_kind_count; ++i) {
        const auto kind = static_cast<HostKind>(i);
        const std::string name(name_of(kind));
        costs.seconds[i] = host_parameter(profile, "host." + name);
        if (kind != HostKind::engine_call) costs.seconds[i] *= scale;
        if (half) costs.seconds[i] *= host_parameter(profile, "half." + name);
    }
    costs.blas_call_s = host_parameter(profile, "host.blas_call");
    // The driver and the bus have their part in a launch.
    costs.step_launch_s = host_parameter(profile, "host.step_launch") * std::sqrt(scale);
    costs.launch_latency_s = host_parameter(profile, "launch_latency_s");
    costs.kernel_gap_s = host_parameter(profile, "kernel_gap_s");
    const auto stddev_of = [&](std::string_view name, double unknown) {
        const Parameter* known = find_parameter(profile.parameters, name);
        return known == nullptr ? unknown : known->relative_stddev;
    };
    costs.model_relative_stddev = host_parameter(profile, "noise.host");
    costs.scale_relative_stddev = stddev_of("host.scale", unknown_scale_stddev);
    costs.call_relative_stddev = stddev_of(second_scalar(model_of(profile)), 0);
    costs.correlation = profile.scale_call_correlation;
    costs.device_relative_stddev = host_parameter(profile, "noise.device");
    return costs;
}

HostCosts host_costs(const FrameworkProfile& profile, const PredictOptions& options, const DeviceSpec& device) {
    HostCosts costs =
        host_costs(profile, options.precision, is_measured_host(profile) ? 1 : device.host_slowdown.value_or(1));
    costs.kernel_gap_s = kernel_gap_s(profile, options.libraries, device);
    return costs;
}

}  // namespace ftax
