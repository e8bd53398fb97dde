#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "predictors/kernels/kernel_detail.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/steps/prepared_model.hpp"

namespace ftax {

/// What a prediction keeps of a kernel's plan.
struct PlannedKernel : kernels::KernelTime {
    Factor factor = Factor::elementwise;
    Bound bound = Bound::latency_floor;
    kernels::Occupancy occupancy;
    std::int32_t launches = 1;  ///< one after the other; the times are those of all
    double energy_s = 0;        ///< see kernels::energy_seconds
};

/// Of each of the schedule's kernels; empty where the binding launches none.
using KernelPlans = std::vector<std::optional<PlannedKernel>>;

/// Step 2 of a prediction: plans the kernels of a binding, equal ones once.
void plan_kernels(const PreparedModel& prepared, const BoundShapes& bound, KernelPlans& plans);

/// How each kernel of a launch runs, for explanations; `slowdown` as in LaunchTimes.
[[nodiscard]] std::vector<KernelDetail> kernel_details(const PreparedModel& prepared, const BoundShapes& bound,
                                                       const KernelPlans& plans, double slowdown, const Launch& launch);

}  // namespace ftax
