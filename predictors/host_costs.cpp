#include "predictors/host_costs.hpp"

#include <algorithm>
#include <string>

namespace ftax {
namespace {

constexpr std::string_view study = "MEASUREMENTS.md, ten op kinds on a middling host of framework_tax.csv, eager";
constexpr std::string_view guess = "order of magnitude; no data separates it";

constexpr ParameterSpec cost(double seconds, std::string_view source = study) {
    return {seconds, seconds / 10, seconds * 10, 0.5, ParameterScope::shared, source};
}

constexpr std::array specs{
    HostParameterSpec{"host.conv", cost(93e-6)},
    HostParameterSpec{"host.conv_depthwise", cost(35e-6)},
    HostParameterSpec{"host.conv_grouped", cost(145e-6)},
    HostParameterSpec{"host.batch_norm", cost(36e-6)},
    HostParameterSpec{"host.gemm", cost(63e-6)},
    HostParameterSpec{"host.bmm", cost(62e-6)},
    HostParameterSpec{"host.layer_norm", cost(44e-6)},
    HostParameterSpec{"host.light", cost(17e-6)},
    HostParameterSpec{"host.view", cost(4.6e-6)},
    HostParameterSpec{"host.module_call", cost(3.9e-6)},
    HostParameterSpec{"host.fused", cost(18e-6)},
    HostParameterSpec{"host.engine", cost(6e-6, guess)},
    HostParameterSpec{"host.graph_node", cost(1e-9, guess)},
    HostParameterSpec{"host.forward", cost(20e-6, guess)},
    HostParameterSpec{"host.synchronize", cost(15e-6, guess)},
    HostParameterSpec{"host.scale", {1, 0.1, 10, 0.5, ParameterScope::device, "one scalar per host"}},
    HostParameterSpec{"host.gemm_scale", {1, 0.3, 4, 0.3, ParameterScope::device, "second scalar: matrix products"}},
    HostParameterSpec{"half.conv", {1.40, 0.5, 3, 0.3, ParameterScope::shared, study}},
    HostParameterSpec{"half.conv_depthwise", {1.18, 0.5, 3, 0.3, ParameterScope::shared, study}},
    HostParameterSpec{"half.conv_grouped", {1.37, 0.5, 3, 0.3, ParameterScope::shared, study}},
    HostParameterSpec{"half.batch_norm", {1.31, 0.5, 3, 0.3, ParameterScope::shared, study}},
    HostParameterSpec{"launch_latency_s", cost(4e-6, guess)},
    HostParameterSpec{"kernel_gap_s", cost(1e-6, guess)},
};

double value_of(const FrameworkProfile& profile, std::string_view name) {
    const auto fitted = std::find_if(profile.parameters.begin(), profile.parameters.end(),
                                     [&](const Parameter& p) { return p.name == name; });
    if (fitted != profile.parameters.end()) return fitted->value;
    const auto spec = std::find_if(specs.begin(), specs.end(), [&](const auto& s) { return s.name == name; });
    return spec == specs.end() ? 1.0 : spec->spec.initial;
}

bool is_matrix_product(HostKind kind) { return kind == HostKind::gemm || kind == HostKind::bmm; }

}  // namespace

std::span<const HostParameterSpec> host_parameter_specs() { return specs; }

HostCosts host_costs(const FrameworkProfile& profile, Precision precision) {
    HostCosts costs;
    const bool half = precision == Precision::fp16 || precision == Precision::bf16;
    const double scale = value_of(profile, "host.scale");
    for (int i = 0; i < host_kind_count; ++i) {
        const auto kind = static_cast<HostKind>(i);
        const std::string name(name_of(kind));
        costs.seconds[i] = value_of(profile, "host." + name) * scale;
        if (is_matrix_product(kind)) costs.seconds[i] *= value_of(profile, "host.gemm_scale");
        if (half) costs.seconds[i] *= value_of(profile, "half." + name);
    }
    costs.launch_latency_s = value_of(profile, "launch_latency_s");
    costs.kernel_gap_s = value_of(profile, "kernel_gap_s");
    return costs;
}

}  // namespace ftax
