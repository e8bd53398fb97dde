#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "predictors/profiles/parameters.hpp"

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
    double host_scale{};                                     ///< scale of the host that a GPU was measured in
    double pointwise_launch_share{}, softmax_launch_share{}, layer_norm_launch_share{}, product_launch_share{};
    double conv_launch_share{};
    double conv_start_s{}, conv_slope_s{}, conv_curvature_s{};  ///< see conv_host_s
    double power_control_time_s{};                              ///< see kernels::within_power
    double kernel_floor_s{};  ///< floor of a kernel alone; a forward pass adds the gap to the next kernel
    double spread{}, product_spread{}, conv_spread{};  ///< half-width of the 90 % interval of log(latency)
};

inline void visit_parameters(OperatorHostParameters& p, const ParameterVisitor& visit) {
    for (std::size_t i = 0; i < operator_names.size(); ++i) {
        const std::string name = "operator.dispatch_s." + std::string(operator_names[i]);
        visit(name, p.dispatch_s[i], *declared_parameter(name));
    }
    using P = OperatorHostParameters;
    static const DeclaredFields<P> fields(
        "operator", FTAX_NAMED(&P::kernel_floor_s, &P::host_scale, &P::pointwise_launch_share, &P::softmax_launch_share,
                               &P::layer_norm_launch_share, &P::product_launch_share, &P::conv_launch_share,
                               &P::conv_start_s, &P::conv_slope_s, &P::conv_curvature_s, &P::power_control_time_s,
                               &P::spread, &P::product_spread, &P::conv_spread));
    fields.visit(p, visit);
}

/// Latency of one timed call. The first event is recorded immediately, the kernel starts after the host work that
/// precedes its launch, and the second event is recorded when both host and kernel are done (CUDA stream order).
inline double operator_latency_s(double host_s, double launch_share, double kernel_s) {
    const double after_launch_s = launch_share * host_s + kernel_s;
    return host_s < after_launch_s ? after_launch_s : host_s;
}

/// Inverts operator_latency_s for the host time: the smaller value of its two regimes is the consistent one.
inline double host_of_latency_s(double latency_s, double launch_share, double kernel_s) {
    return std::min(latency_s, (latency_s - kernel_s) / launch_share);
}

/// Host time of the `order`-th convolution of a process: grows with the number of cached plans, and increasingly fast.
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
