#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "predictors/kernels/kernel_models.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/steps/prepared_model.hpp"

namespace ftax {

struct PlannedKernel : kernels::KernelTime {
    Factor factor = Factor::elementwise;
    Bound bound = Bound::latency_floor;
    kernels::Occupancy occupancy;
    std::int32_t launches = 1;  ///< sequential launches; the times are totals
    double energy_s = 0;        ///< see kernels::energy_seconds
};

/// One plan per kernel of the schedule; nullopt if the binding does not launch it.
using KernelPlans = std::vector<std::optional<PlannedKernel>>;

/// Step 2 of a prediction: plans the kernels of a binding, identical ones only once.
void plan_kernels(const PreparedModel& prepared, const BoundShapes& bound, KernelPlans& plans);

/// Returns details of each kernel of a launch, for explanations; `slowdown` as in LaunchTimes.
[[nodiscard]] std::vector<KernelDetail> kernel_details(const PreparedModel& prepared, const BoundShapes& bound,
                                                       const KernelPlans& plans, double slowdown, const Launch& launch);

}  // namespace ftax
