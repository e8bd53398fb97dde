#include <algorithm>
#include <limits>

#include "predictors/kernels/all_reduce.hpp"
#include "predictors/kernels/pass_power.hpp"
#include "predictors/lowering/kernel_shapes.hpp"
#include "predictors/steps/steps.hpp"

namespace ftax {
namespace {

PlannedKernel plan_all_reduce(const PreparedModel& prepared, const BoundShapes& bound, const Op& op) {
    const TensorId sum = op.outputs[0];
    const double bytes = static_cast<double>(element_count(prepared.graph.tensors[sum], bound)) *
                         bits_of(prepared.schedule.storage[sum]) / 8;
    const bool own_kernels = prepared.model.traits.serves_sequences && !prepared.libraries.sums_by_nccl;
    kernels::Link link = kernels::link_of(prepared.device.device, prepared.framework.parameters);
    if (prepared.libraries.sums_without_switch) link.switch_share = 0;
    const double seconds = (own_kernels ? kernels::served_all_reduce_s : kernels::all_reduce_s)(
        bytes, op.integer("ranks", 1), link, static_cast<double>(op.integer("calls", 1)));
    return {{seconds, 0, 0}, Factor::elementwise, Bound::memory, {}, 1, 0, {}};
}

/// Keeps the plan of the binding before where the shape is the same.
void plan_one(const PreparedModel& prepared, const BoundShapes& bound, const Kernel& kernel,
              std::optional<PlannedKernel>& one) {
    const DeviceSpec& device = prepared.device.device;
    const KernelShape shape = kernel_shape(prepared.graph, prepared.schedule, kernel, bound);
    const auto times = static_cast<std::int32_t>(
        std::min<std::int64_t>(repetitions(prepared.graph, kernel, bound), std::numeric_limits<std::int32_t>::max()));
    if (one && one->launches == times && one->shape == shape) return;
    const auto planned = plan(prepared.kernel_models, shape, kernel.path);
    const Factor factor = factor_of(shape, kernel.path);
    const double scale = prepared.device.factors.scale(factor) * times;
    const kernels::KernelTime time{scale * planned.seconds, scale * planned.power_limited_s, planned.host_launches};
    const kernels::Occupancy occupied = occupancy(planned, device.sms, device.max_threads_per_sm);
    const auto* gpu = std::get_if<KernelModels>(&prepared.kernel_models);
    const double joules = gpu != nullptr ? times * energy_j(*gpu, shape, kernel.path) : 0;
    one = {time, factor, planned.bound(), occupied, times, joules, shape};
}

}  // namespace

void plan_kernels(const PreparedModel& prepared, const BoundShapes& bound, KernelPlans& plans) {
    const Graph& graph = prepared.graph;
    plans.resize(prepared.schedule.kernels.size());
    for (std::size_t i = 0; i < plans.size(); ++i) {
        if (prepared.first_equal[i] < i) continue;
        const Kernel& kernel = prepared.schedule.kernels[i];
        if (!is_launched(graph, kernel, bound)) {
            plans[i].reset();
        } else if (kernel.op != no_op && graph.ops[kernel.op].kind == OpKind::all_reduce) {
            plans[i] = plan_all_reduce(prepared, bound, graph.ops[kernel.op]);
        } else {
            plan_one(prepared, bound, kernel, plans[i]);
        }
    }
}

std::vector<KernelDetail> kernel_details(const PreparedModel& prepared, const BoundShapes& bound,
                                         const KernelPlans& plans, double slowdown, const Launch& launch) {
    std::vector<KernelDetail> result;
    for (std::uint32_t i = launch.first_kernel; i < launch.first_kernel + launch.kernel_count; ++i) {
        const Kernel& kernel = prepared.schedule.kernels[i];
        if (!is_launched(prepared.graph, kernel, bound)) continue;
        result.push_back(kernel_detail(prepared.kernel_models,
                                       kernel_shape(prepared.graph, prepared.schedule, kernel, bound), kernel.path));
        const PlannedKernel& planned = *plans[prepared.first_equal[i]];
        result.back().seconds =
            planned.seconds + slowdown * throttling_seconds(planned.seconds, planned.power_limited_s);
    }
    return result;
}

}  // namespace ftax
