#pragma once

#include "predictors/steps/launch_times.hpp"

namespace ftax {

/// Step 4 of a prediction: computes latency, bound, power, interval, coverage and warnings. `spans` is a buffer for the
/// timeline; `explanation`, if not null, gets the parts of the interval and the evidence.
[[nodiscard]] Prediction summarise(const PreparedModel& prepared, const BoundShapes& bound,
                                   const ShapeBindings& bindings, const KernelPlans& plans, const LaunchTimes& times,
                                   std::vector<Span>& spans, Explanation* explanation = nullptr);

}  // namespace ftax
