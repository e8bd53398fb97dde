#include "predictors/kernel_models.hpp"

#include <algorithm>

#include "ftax/equations.hpp"
#include "predictors/profile_parameters.hpp"

namespace ftax {
namespace {

KernelCost roofline(double flops, double rate, double bytes, double bandwidth) {
    const double arithmetic_s = flops / rate;
    const double traffic_s = bytes / bandwidth;
    return {2e-6 + equations::smooth_maximum(arithmetic_s, traffic_s),
            arithmetic_s > traffic_s ? Bound::compute : Bound::memory};
}

/// A kernel that takes less than twice the floor is bound by it.
Bound bound_of(double seconds, double floor_s, Bound otherwise) {
    return seconds < 2 * floor_s ? Bound::latency_floor : otherwise;
}

}  // namespace

KernelModels::KernelModels(const DeviceProfile& profile)
    : device_(profile.device),
      conv_(profile_parameters<kernels::ConvParameters<double>>(profile)),
      memory_(profile_parameters<kernels::MemoryParameters<double>>(profile)),
      attention_(profile_parameters<kernels::AttentionParameters<double>>(profile)) {
    kernels::SustainedParameters<double> sustained;
    visit_parameters(sustained, device_, [&](std::string_view name, double& value, const ParameterSpec& spec) {
        value = profile_value(profile, name, spec);
    });
    for (int path = 0; path < math_path_count; ++path) {
        rates_[path] = kernels::device_rates(device_, static_cast<MathPath>(path), sustained);
    }
}

KernelCost KernelModels::cost(const kernels::GemmShape& s, MathPath path) const {
    const double bytes =
        double(s.element_bytes) * double(s.batch) * (double(s.m) * s.k + double(s.k) * s.n + double(s.m) * s.n);
    return roofline(2.0 * s.batch * s.m * s.n * s.k, 0.8 * device_.peak(path).value_or(1e12), bytes,
                    0.8 * device_.memory_bandwidth_bytes_per_s);
}

KernelCost KernelModels::cost(const kernels::ConvShape& shape, MathPath path) const {
    const auto plan = kernels::plan_conv(shape, rates(path), conv_);
    return {plan.seconds, plan.bound};
}

KernelCost KernelModels::cost(const kernels::MemoryShape& shape) const {
    const auto& device = rates(MathPath::fp32);
    const double seconds = kernels::memory_seconds(shape, device, memory_);
    return {seconds, bound_of(seconds, device.floor_s, Bound::memory)};
}

KernelCost KernelModels::cost(const kernels::AttentionShape& shape, MathPath path) const {
    const double seconds = kernels::attention_seconds(shape, rates(path), attention_);
    return {seconds, bound_of(seconds, rates(path).floor_s, Bound::compute)};
}

}  // namespace ftax
