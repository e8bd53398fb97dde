#include "predictors/host/host_costs.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "ftax/precision.hpp"

namespace ftax {
namespace {

constexpr std::string_view study =
    "fit of ten kinds of operations on a middling host of framework_tax.csv, eager, batch 1";
constexpr std::string_view composite = "as above, with the views that torch.nn.Linear (3) and torch.matmul (5) make";
constexpr std::string_view residual =
    "standard deviation of log(predicted / measured), one model of framework_tax.csv left out";
constexpr std::string_view guess = "order of magnitude; no data separates it";

constexpr ParameterSpec cost(double seconds, std::string_view source = study) {
    return {seconds, seconds / 10, seconds * 10, source == guess ? 0.5 : 0.2, ParameterScope::shared, source};
}

struct HostParameterSpec {
    std::string_view name;
    ParameterSpec spec;
};
constexpr std::array specs{
    HostParameterSpec{"host.conv", cost(82e-6)},
    HostParameterSpec{"host.conv_depthwise", cost(30e-6)},
    HostParameterSpec{"host.conv_grouped", cost(120e-6)},
    HostParameterSpec{"host.batch_norm", cost(63e-6)},
    HostParameterSpec{"host.gemm", cost(70e-6, composite)},
    HostParameterSpec{"host.bmm", cost(85e-6, composite)},
    HostParameterSpec{"host.layer_norm", cost(30e-6)},
    HostParameterSpec{"host.elementwise", cost(13e-6)},
    HostParameterSpec{"host.view", cost(6e-6)},
    HostParameterSpec{"host.module_call", cost(2e-6)},
    HostParameterSpec{"host.step_launch",
                      cost(3.3e-6,
                           "cuDNN 8.2's LSTM and RNN, PyTorch 1.11: batch 1 to 16, 6.5 to 7 us for the two kernels of "
                           "a layer's step (github.com/xwang233/code-snippet, cudnn-rnn-bench-62143/forward)")},
    HostParameterSpec{"host.list_part", cost(1.5e-6,
                                             "densenet's concatenations of up to 37 parts, framework_tax.csv; "
                                             "TensorShape.cpp checks each part and Shape.cu "
                                             "enters it into the kernel's table (PyTorch 1.12)")},
    HostParameterSpec{"host.fused", cost(18e-6)},
    HostParameterSpec{"host.engine", cost(6e-6, guess)},
    HostParameterSpec{"host.graph_node", cost(1e-9, guess)},
    HostParameterSpec{"host.forward", cost(20e-6, guess)},
    HostParameterSpec{"host.sequence", cost(1e-9, "nothing, but for frameworks that serve sequences")},
    HostParameterSpec{"host.synchronize", cost(15e-6, guess)},
    HostParameterSpec{"host.scale", {1, 0.1, 10, 0.5, ParameterScope::device, "one scalar per host"}},
    // Bimodal over the hosts of framework_tax.csv: 2–10 µs on most, 58–108 µs on RTX 2080 Ti 1025, RTX A6000 fp32, V100
    // 1014 and 1025 fp32, where each torch.nn.Linear and each batch-1 pointwise convolution pays it alike.
    HostParameterSpec{
        "host.blas_call",
        {5e-6, 1e-7, 1e-3, 0.7, ParameterScope::device, "second scalar of a host: one BLAS library call"}},
    // 0.4 ms on RTX 8000 and 1.2 ms on V100 hosts of framework_tax.csv, where the layers inside cost alike.
    HostParameterSpec{"host.engine_call",
                      {400e-6, 1e-5, 1e-2, 0.7, ParameterScope::device,
                       "second scalar of a host under Torch-TensorRT: an engine's call, most of it "
                       "cudaGetDeviceProperties (0.35 ms: pytorch issue 4908, TensorRT issues 854, 2266)"}},
    HostParameterSpec{"half.conv", {1.40, 0.5, 3, 0.15, ParameterScope::shared, study}},
    HostParameterSpec{"half.conv_depthwise", {1.18, 0.5, 3, 0.15, ParameterScope::shared, study}},
    HostParameterSpec{"half.conv_grouped", {1.35, 0.5, 3, 0.05, ParameterScope::shared, study}},
    HostParameterSpec{"half.batch_norm", {1.31, 0.5, 3, 0.15, ParameterScope::shared, study}},
    HostParameterSpec{"noise.host", {0.12, 0.02, 1, 0.5, ParameterScope::shared, residual}},
    HostParameterSpec{"noise.device", {0.15, 0.02, 1, 0.5, ParameterScope::shared, residual}},
    HostParameterSpec{"launch_latency_s", cost(4e-6, guess)},
    HostParameterSpec{"kernel_gap_s", cost(1e-6, guess)},
};

/// How far an uncalibrated host is from the reference. Source: prior of host.scale.
constexpr double unknown_scale_stddev = 0.5;

/// Returns true if the profile was fitted to a machine: neither the reference host nor that host scaled by anchor rows.
bool is_measured_host(const FrameworkProfile& profile) {
    return profile.host != "reference" && profile.host != "anchored";
}

}  // namespace

double kernel_gap_s(const FrameworkProfile& profile, const DeviceSpec& device) {
    if (is_cpu(device)) return 0;
    const LoweringTraits& traits = model_of(profile).traits;
    const bool fitted = is_measured_host(profile) || traits.engine || traits.serves_sequences;
    const bool captured = traits.host_kind == HostKind::graph_node;
    if (device.kernel_gap_s && !captured && !is_measured_host(profile)) return *device.kernel_gap_s;
    // A kernel is launched before the one ahead of it has ended (programmatic dependent launch). Source: SGLang and
    // FlashInfer, is_arch_support_pdl; flashinfer's pull request 930.
    if (traits.library == Library::sglang && device.compute_capability_major >= 10) return 0;
    const auto measured_s = fitted ? std::nullopt : captured ? device.chip().graph_gap_s : device.chip().stream_gap_s;
    return measured_s.value_or(host_parameter(profile, "kernel_gap_s"));
}

std::optional<ParameterSpec> host_parameter_spec(const FrameworkModel& framework, std::string_view name) {
    const auto found = std::find_if(specs.begin(), specs.end(), [&](const auto& s) { return s.name == name; });
    if (found == specs.end()) return std::nullopt;
    ParameterSpec spec = found->spec;
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

/// The costs on a CPU that takes `slowdown` times as long as the profile's.
static HostCosts slowed_costs(const FrameworkProfile& profile, Precision precision, double slowdown) {
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
    // The driver and the bus have their part in a launch. Source: kernelbench.csv, LSTM of 512 steps: 5.5 and 6.1 us a
    // step on hosts of scale 1.1, 6.2 to 10 on those of 2.1 to 2.6.
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

HostCosts host_costs(const FrameworkProfile& profile, Precision precision) {
    return slowed_costs(profile, precision, 1);
}

HostCosts host_costs(const FrameworkProfile& profile, Precision precision, const DeviceSpec& device) {
    HostCosts costs =
        slowed_costs(profile, precision, is_measured_host(profile) ? 1 : device.host_slowdown.value_or(1));
    costs.kernel_gap_s = kernel_gap_s(profile, device);
    return costs;
}

}  // namespace ftax
