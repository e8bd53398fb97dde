#pragma once

#include <cmath>

/// The equations of the model, each in one place. Templated on the scalar: `double` predicts, `ceres::Jet` fits.
namespace ftax::equations {

/// Latency of a forward pass when host and device overlap perfectly.
/// Source: Fernandez et al., "The Framework Tax", EMNLP 2023, arXiv 2302.06117, section 3.
template <class T>
T closed_form_s(const T& host_s, const T& device_s) {
    return host_s < device_s ? device_s : host_s;
}

/// Smooth maximum of two times that share one resource only in part: (a⁴ + b⁴)^¼, within 19 % of max(a, b).
/// Source: exponent from fits of neusight_ops.csv (3.3 for matrix products) and of whole models (4); 4 needs square
/// roots only.
template <class T>
T smooth_maximum(const T& a, const T& b) {
    using std::sqrt;
    const T a2 = a * a;
    const T b2 = b * b;
    return sqrt(sqrt(a2 * a2 + b2 * b2));
}

/// Time when a kernel can start on the device: its launch has arrived and the kernel before it has ended.
/// Source: CUDA stream order.
template <class T>
T kernel_start_s(const T& host_ready_s, const T& launch_latency_s, const T& device_free_s, const T& gap_s) {
    const T arrived = host_ready_s + launch_latency_s;
    const T free = device_free_s + gap_s;
    return arrived < free ? free : arrived;
}

/// How far `a` decides the smooth maximum of a and b: ∂ log smooth_maximum / ∂ log a, from 0 to 1.
template <class T>
T decisive_share(const T& a, const T& b) {
    const T a4 = a * a * a * a;
    const T b4 = b * b * b * b;
    return a4 + b4 > T(0.0) ? a4 / (a4 + b4) : T(0.5);
}

/// Share of a run in which the GPU waits for the framework.
/// Source: Fernandez et al., arXiv 2302.06117, figures 2 and 3: latency less kernel time.
template <class T>
T framework_overhead(const T& latency_s, const T& device_s) {
    return latency_s > device_s ? T((latency_s - device_s) / latency_s) : T(0.0);
}

/// Half-width of the central 90 % of a normal distribution in standard deviations.
inline constexpr double normal_90 = 1.6449;

}  // namespace ftax::equations
