#pragma once

#include "predictors/steps/launch_times.hpp"

namespace ftax {

/// Sets the 5 % and 95 % quantiles of the maximum of host and device time, both with log-normal errors.
void set_interval(Prediction& result);

/// Step 4 of a prediction: computes latency, bound, power, interval, coverage and warnings. `spans` is a buffer for the
/// timeline; `explanation`, if not null, gets the parts of the interval and the evidence.
[[nodiscard]] Prediction summarise(const PreparedModel& prepared, const BoundShapes& bound,
                                   const ShapeBindings& bindings, const KernelPlans& plans, const LaunchTimes& times,
                                   std::vector<Span>& spans, Explanation* explanation = nullptr);

}  // namespace ftax
