#include "predictors/kernels/kernel_cost.hpp"

namespace ftax {
namespace {

/// A kernel that takes less than twice the floor is bound by it.
KernelCost with_floor(const kernels::KernelTime<double>& time, double floor_s, Bound otherwise,
                      const Residency& residency) {
    return {time, time.seconds < 2 * floor_s ? Bound::latency_floor : otherwise, residency};
}

}  // namespace

KernelCost kernel_cost(const KernelModels<double>& models, const kernels::GemmShape& shape, MathPath path) {
    const auto& rates = models.at(path);
    const auto plan = kernels::plan_gemm(shape, rates, models.parameters.gemm);
    const double flops = 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) *
                         static_cast<double>(shape.n) * static_cast<double>(shape.k);
    const double elements =
        static_cast<double>(shape.batch) * (static_cast<double>(shape.m) * static_cast<double>(shape.k + shape.n)) +
        static_cast<double>(shape.linear ? 1 : shape.batch) * static_cast<double>(shape.k) *
            static_cast<double>(shape.n);
    const bool compute = flops / rates.flops_per_s > elements * shape.element_bytes / rates.bandwidth_bytes_per_s;
    return with_floor(plan, rates.floor_s, compute ? Bound::compute : Bound::memory, residency(plan, rates));
}

KernelCost kernel_cost(const KernelModels<double>& models, const kernels::ConvShape& shape, MathPath path) {
    const auto plan = kernels::plan_conv(shape, models.at(path), models.parameters.conv);
    return {plan, plan.bound, residency(shape, plan, models.at(path))};
}

KernelCost kernel_cost(const KernelModels<double>& models, const kernels::MemoryShape& shape, MathPath path) {
    const auto& rates = models.at(path);
    return with_floor(models.time(shape, path), rates.floor_s, Bound::memory, residency(shape, rates));
}

KernelCost kernel_cost(const KernelModels<double>& models, const kernels::AttentionShape& shape, MathPath path) {
    const auto& rates = models.at(path);
    return with_floor(models.time(shape, path), rates.floor_s, Bound::compute, residency(shape, rates));
}

}  // namespace ftax
