#pragma once

#include <cmath>

/// The equations of the model. Times are in seconds.
namespace ftax::equations {

/// Returns the latency of a forward pass if host and device overlap perfectly.
/// Source: Fernandez et al., "The Framework Tax", EMNLP 2023, arXiv 2302.06117, section 3.
inline double closed_form_s(double host_s, double device_s) {
    return host_s < device_s ? device_s : host_s;
}

/// Returns a smooth maximum of two times whose work overlaps only partly: (a⁴ + b⁴)^¼, within 19 % of max(a, b).
/// Source: exponent from fits of neusight_ops.csv (3.3 for matrix products) and whole models (4); 4 needs square roots.
inline double smooth_maximum(double a, double b) {
    const double a2 = a * a;
    const double b2 = b * b;
    return std::sqrt(std::sqrt(a2 * a2 + b2 * b2));
}

/// Returns the earliest start of a kernel on the device: its launch has arrived, the previous kernel has ended.
inline double kernel_start_s(double host_ready_s, double launch_latency_s, double device_free_s, double gap_s) {
    const double arrived = host_ready_s + launch_latency_s;
    const double free = device_free_s + gap_s;
    return arrived < free ? free : arrived;
}

/// Returns the sensitivity of the smooth maximum to `a`: ∂ log smooth_maximum / ∂ log a, from 0 to 1.
inline double decisive_share(double a, double b) {
    const double a4 = a * a * a * a;
    const double b4 = b * b * b * b;
    return a4 + b4 > 0 ? a4 / (a4 + b4) : 0.5;
}

/// Returns the share of a run during which the GPU waits for the framework.
/// Source: Fernandez et al., arXiv 2302.06117, figures 2 and 3: latency less kernel time.
inline double framework_overhead(double latency_s, double device_s) {
    return latency_s > device_s ? (latency_s - device_s) / latency_s : 0;
}

/// Half-width of the central 90 % of a normal distribution, in standard deviations.
inline constexpr double normal_90 = 1.6449;

}  // namespace ftax::equations
