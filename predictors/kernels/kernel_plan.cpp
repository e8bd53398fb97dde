#include "predictors/kernels/kernel_plan.hpp"

#include <algorithm>
#include <cmath>

namespace ftax::kernels {

Occupancy occupancy(const KernelPlan& plan, double sms, double max_threads_per_sm) {
    const double per_sm = std::ceil(plan.blocks) / sms;
    const double waves = std::ceil(per_sm / plan.blocks_per_sm);
    if (waves < 1) return {};
    const double last = per_sm - (waves - 1) * plan.blocks_per_sm;  // blocks per SM in the last wave
    return {.sms = (waves - 1 + std::min(1.0, last)) / waves,
            .warps = std::min(1.0, per_sm / waves * plan.threads_per_block / max_threads_per_sm)};
}

}  // namespace ftax::kernels
