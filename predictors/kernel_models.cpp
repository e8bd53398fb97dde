#include "predictors/kernel_models.hpp"

#include <algorithm>

#include "ftax/equations.hpp"

namespace ftax {
namespace {

KernelCost roofline(double flops, double rate, double bytes, double bandwidth) {
    const double arithmetic_s = flops / rate;
    const double traffic_s = bytes / bandwidth;
    return {2e-6 + equations::smooth_maximum(arithmetic_s, traffic_s),
            arithmetic_s > traffic_s ? Bound::compute : Bound::memory};
}

}  // namespace

KernelModels::KernelModels(const DeviceProfile& profile) : device_(profile.device) {}

KernelCost KernelModels::cost(const kernels::GemmShape& s, MathPath path) const {
    const double bytes = double(s.element_bytes) * double(s.batch) * (double(s.m) * s.k + double(s.k) * s.n + double(s.m) * s.n);
    return roofline(2.0 * s.batch * s.m * s.n * s.k, 0.8 * device_.peak(path).value_or(1e12), bytes,
                    0.8 * device_.memory_bandwidth_bytes_per_s);
}

KernelCost KernelModels::cost(const kernels::ConvShape& s, MathPath path) const {
    const double outputs = double(s.batch) * s.out_channels * s.out_depth * s.out_height * s.out_width;
    const double inputs = double(s.batch) * s.in_channels * s.in_depth * s.in_height * s.in_width;
    const double filter = double(s.in_channels) / s.groups * s.kernel_d * s.kernel_h * s.kernel_w;
    return roofline(2.0 * outputs * filter, 0.5 * device_.peak(path).value_or(1e12),
                    s.element_bytes * (outputs + inputs + filter * s.out_channels),
                    0.8 * device_.memory_bandwidth_bytes_per_s);
}

KernelCost KernelModels::cost(const kernels::MemoryShape& s) const {
    return roofline(0, 1, double(s.read_bytes) + double(s.write_bytes), 0.8 * device_.memory_bandwidth_bytes_per_s);
}

KernelCost KernelModels::cost(const kernels::AttentionShape& s, MathPath path) const {
    const double rows = double(s.batch) * s.heads;
    return roofline(4.0 * rows * s.q_length * s.kv_length * s.head_dim, 0.5 * device_.peak(path).value_or(1e12),
                    s.element_bytes * rows * s.head_dim * 2.0 * (double(s.q_length) + s.kv_length),
                    0.8 * device_.memory_bandwidth_bytes_per_s);
}

}  // namespace ftax
