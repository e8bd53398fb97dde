#include "predictors/kernel_cost.hpp"

namespace ftax {
namespace {

/// A kernel that takes less than twice the floor is bound by it.
KernelCost with_floor(double seconds, double floor_s, Bound otherwise) {
    return {seconds, seconds < 2 * floor_s ? Bound::latency_floor : otherwise};
}

}  // namespace

KernelCost kernel_cost(const KernelModels<double>& models, const kernels::GemmShape& shape, MathPath path) {
    const auto& rates = models.at(path);
    const double s = models.seconds(shape, path);
    const double flops = 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) *
                         static_cast<double>(shape.n) * static_cast<double>(shape.k);
    const double elements = static_cast<double>(shape.batch) * (static_cast<double>(shape.m) * static_cast<double>(shape.k + shape.n)) +
                            static_cast<double>(shape.linear ? 1 : shape.batch) * static_cast<double>(shape.k) * static_cast<double>(shape.n);
    const bool compute = flops / rates.flops_per_s > elements * shape.element_bytes / rates.bandwidth_bytes_per_s;
    return with_floor(s, rates.floor_s, compute ? Bound::compute : Bound::memory);
}

KernelCost kernel_cost(const KernelModels<double>& models, const kernels::ConvShape& shape, MathPath path) {
    const auto plan = kernels::plan_conv(shape, models.at(path), models.parameters.conv);
    return {plan.seconds, plan.bound};
}

KernelCost kernel_cost(const KernelModels<double>& models, const kernels::MemoryShape& shape, MathPath path) {
    return with_floor(models.seconds(shape, path), models.at(path).floor_s, Bound::memory);
}

KernelCost kernel_cost(const KernelModels<double>& models, const kernels::AttentionShape& shape, MathPath path) {
    return with_floor(models.seconds(shape, path), models.at(path).floor_s, Bound::compute);
}

}  // namespace ftax
