#pragma once

#include <vector>

#include "predictors/steps/kernel_plans.hpp"
#include "predictors/timeline/launch_costs.hpp"

namespace ftax {

/// Times of the schedule's launches, the first of them the forward call itself.
struct LaunchTimes {
    std::vector<LaunchCosts> costs;      ///< what each is made of
    std::vector<TimedLaunch> on_clocks;  ///< as the timeline takes them
    double follows_s = 0;                ///< host time after the pass, of an engine that schedules ahead
    double slowdown = 0;                 ///< by the power limit, see PassPower
};

/// Step 3 of a prediction: dispatch of each launch on the host, its kernels on the device within the power limit.
void time_launches(const PreparedModel& prepared, const BoundShapes& bound, const ShapeBindings& bindings,
                   const KernelPlans& plans, LaunchTimes& times);

}  // namespace ftax
