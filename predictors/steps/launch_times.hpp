#pragma once

#include <vector>

#include "predictors/steps/kernel_plans.hpp"
#include "predictors/timeline/launch_costs.hpp"

namespace ftax {

/// Times of the schedule's launches; the first entry is the forward call itself.
struct LaunchTimes {
    std::vector<LaunchCosts> costs;      ///< components of each launch's cost
    std::vector<TimedLaunch> on_clocks;  ///< input of the timeline
    double follows_s = 0;                ///< host time after the pass, if the engine schedules ahead
    double slowdown = 0;                 ///< caused by the power limit, see PassPower
};

/// Step 3 of a prediction: computes the dispatch time of each launch and its kernels' time under the power limit.
void time_launches(const PreparedModel& prepared, const BoundShapes& bound, const ShapeBindings& bindings,
                   const KernelPlans& plans, LaunchTimes& times);

}  // namespace ftax
