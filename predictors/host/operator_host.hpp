#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "ftax/parameter.hpp"

/// Host side of single operators as timed in measurement files: one call of an eager framework between two CUDA events
/// on an idle GPU. Host profiles hold its parameters (data/profiles/hosts).
namespace ftax {

/// Operator names in operator files; suffix u: one operand is a scalar.
inline constexpr std::array<std::string_view, 16> operator_names = {"add",  "mul",    "div",  "pow",  "addu", "mulu",
                                                                    "divu", "powu",   "relu", "tanh", "gelu", "softmax",
                                                                    "ln",   "linear", "bmm",  "conv"};

[[nodiscard]] inline std::optional<std::size_t> operator_index(std::string_view name) noexcept {
    const auto at = std::find(operator_names.begin(), operator_names.end(), name);
    if (at == operator_names.end()) return std::nullopt;
    return static_cast<std::size_t>(at - operator_names.begin());
}

struct OperatorHostParameters {
    std::array<double, operator_names.size()> dispatch_s{};  ///< by operator, on a host of scale 1
    double scale{};                                          ///< scale of the host that a GPU was measured in
    double pointwise_launch_share{}, softmax_launch_share{}, layer_norm_launch_share{}, product_launch_share{};
    double conv_launch_share{};
    double conv_start_s{}, conv_slope_s{}, conv_curvature_s{};  ///< see conv_host_s
    double power_control_time_s{};                              ///< see kernels::within_power
    double kernel_floor_s{};  ///< floor of a kernel alone; a forward pass adds the gap to the next kernel
    double spread{}, product_spread{}, conv_spread{};  ///< half-width of the 90 % interval of log(latency)
};

template <class Visit>
void visit_parameters(OperatorHostParameters& p, Visit&& visit) {
    using enum ParameterScope;
    constexpr std::array<double, operator_names.size()> initial_s = {26.4e-6, 26.3e-6, 26.4e-6, 27e-6, 31.1e-6, 31.2e-6,
                                                                     31.3e-6, 29.7e-6, 32.6e-6, 26e-6, 31.1e-6, 33.9e-6,
                                                                     47.6e-6, 45e-6,   25e-6,   2e-4};
    for (std::size_t i = 0; i < operator_names.size(); ++i) {
        visit("operator.dispatch_s." + std::string(operator_names[i]), p.dispatch_s[i],
              ParameterSpec{initial_s[i], 5e-6, 2e-3, 0.3, shared,
                            "time of a call whose kernel is short; fastest rows of neusight_ops.csv"});
    }
    const auto add = [&visit](const char* name, double& field, const ParameterSpec& spec) {
        visit(std::string("operator.") + name, field, spec);
    };
    constexpr auto before_kernel = "share of the call's host time that passes before its kernel starts";
    add("kernel_floor_s", p.kernel_floor_s,
        {2e-6, 5e-7, 1e-5, 0.3, shared, "start to end of an empty kernel; fits of whole models: 2 µs"});
    add("host_scale", p.scale,
        {1, 0.2, 5, 0.3, device, "dispatch time of the machine a GPU was measured in, A100's machine = 1"});
    add("pointwise_launch_share", p.pointwise_launch_share, {0.53, 0.05, 1, 0.3, shared, before_kernel});
    add("softmax_launch_share", p.softmax_launch_share, {0.63, 0.05, 1, 0.3, shared, before_kernel});
    add("layer_norm_launch_share", p.layer_norm_launch_share, {0.76, 0.05, 1, 0.3, shared, before_kernel});
    add("product_launch_share", p.product_launch_share,
        {0.7, 0.05, 1, 0.3, shared,
         "the same for linear and bmm; rows whose latency does not depend on k up to a length"});
    add("conv_launch_share", p.conv_launch_share,
        {0.9, 0.05, 1, 0.1, shared, "the same for conv: plans are looked up before the launch"});
    add("conv_start_s", p.conv_start_s, {5e-5, 5e-6, 1e-3, 0.5, shared, "call of the first convolution of a process"});
    add("conv_slope_s", p.conv_slope_s, {5e-5, 1e-7, 1e-3, 1.0, shared, "more per thousand shapes run before"});
    add("conv_curvature_s", p.conv_curvature_s, {5e-6, 1e-8, 1e-3, 1.0, shared, "more per square of it"});
    add("power_control_time_s", p.power_control_time_s,
        {1e-3, 1e-5, 0.1, 1.0, shared,
         "kernel of a timed call that feels half of the power limit: power control sees the pauses between calls too"});
    add("spread", p.spread,
        {0.35, 0.01, 2, 0.5, device, "90 % of rows lie within exp(±spread); left-out devices of neusight_ops.csv"});
    add("product_spread", p.product_spread, {0.4, 0.01, 2, 0.5, device, "the same for linear and bmm"});
    add("conv_spread", p.conv_spread, {0.45, 0.01, 2, 0.5, device, "the same for conv"});
}

/// Latency of one timed call. The first event is recorded immediately, the kernel starts after the host work that
/// precedes its launch, and the second event is recorded when both host and kernel are done.
/// Source: CUDA stream order; neusight_ops.csv shows both regimes, flat at the host's time and linear with an offset.
inline double operator_latency_s(double host_s, double launch_share, double kernel_s) {
    const double after_launch_s = launch_share * host_s + kernel_s;
    return host_s < after_launch_s ? after_launch_s : host_s;
}

/// Inverts operator_latency_s for the host time: the smaller value of its two regimes is the consistent one.
inline double host_of_latency_s(double latency_s, double launch_share, double kernel_s) {
    return std::min(latency_s, (latency_s - kernel_s) / launch_share);
}

/// Host time of the `order`-th convolution of a process: grows with the number of cached plans, and increasingly fast.
/// Source: the shortest rows of neusight_ops.csv conv along `order`.
inline double conv_host_s(double order, double start_s, double slope_s, double curvature_s) {
    const double thousands = order / 1000;
    return start_s + slope_s * thousands + curvature_s * (thousands * thousands);
}

inline bool is_product(std::string_view name) {
    return name == "linear" || name == "bmm";
}

/// Returns the share of the host time before the kernel starts.
inline double launch_share(std::string_view name, const OperatorHostParameters& p) {
    if (name == "conv") return p.conv_launch_share;
    if (is_product(name)) return p.product_launch_share;
    if (name == "softmax") return p.softmax_launch_share;
    if (name == "ln") return p.layer_norm_launch_share;
    return p.pointwise_launch_share;
}

inline double spread(std::string_view name, const OperatorHostParameters& p) {
    if (name == "conv") return p.conv_spread;
    return is_product(name) ? p.product_spread : p.spread;
}

}  // namespace ftax
