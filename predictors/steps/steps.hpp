#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ftax/predict.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/kernels/device_model.hpp"
#include "predictors/kernels/kernel_models.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/timeline/launch_costs.hpp"
#include "predictors/timeline/schedule.hpp"
#include "predictors/timeline/timeline.hpp"

/// The steps of a prediction, in their order.
namespace ftax {

/// Step 1 of a prediction: a graph lowered for one device and framework, independent of any binding of symbols.
struct PreparedModel {
    /// Throws Error{usage} if the framework cannot run the model. `source` must outlive the object.
    PreparedModel(const Graph& source, DeviceProfile device_profile, FrameworkProfile framework_profile,
                  PredictOptions asked);
    PreparedModel(const PreparedModel&) = delete;
    PreparedModel& operator=(const PreparedModel&) = delete;

    /// Returns true if the host costs are those of the x86 reference although the device has a CPU of its own.
    [[nodiscard]] bool has_foreign_host() const;
    [[nodiscard]] bool synchronized() const { return synchronizes_runs(model, options); }
    [[nodiscard]] TimelineOptions timeline_options() const;
    /// Binds the graph's symbols. With nested tensors, `seq` is reduced to the mean length without padding.
    void bind(const ShapeBindings& bindings, BoundShapes& bound) const;

    DeviceProfile device;
    FrameworkProfile framework;
    PredictOptions options;  ///< as executed: int8 becomes f16 if the engine has no int8 kernels
    const FrameworkModel& model;
    LibraryBehaviour libraries;
    std::optional<Graph> own_graph;  ///< rewritten graph; nullopt if the framework rewrites nothing
    const Graph& graph;
    std::vector<bool> guessed;  ///< operators with guessed work
    std::size_t guesses;        ///< number of guessed operators
    Schedule schedule;
    std::vector<std::uint32_t> first_equal, first_equal_launch;
    DeviceModel kernel_models;
    HostCosts costs;
    MeasuredSet run;       ///< what measured rows are compared with, without kernels
    DType weights;         ///< half-precision type of the source's weights; f32 if there is none
    bool widened = false;  ///< int8 is requested, f16 is executed
    bool quantised_by_file = false;
};

struct PlannedKernel : kernels::KernelTime {
    Factor factor = Factor::elementwise;
    Bound bound = Bound::latency_floor;
    kernels::Occupancy occupancy;
    std::int32_t launches = 1;  ///< sequential launches; the times are totals
    double energy_j = 0;        ///< see energy_j()
    KernelShape shape{};
};

/// One plan per kernel that equals none before it (PreparedModel::first_equal); nullopt where it is not launched.
using KernelPlans = std::vector<std::optional<PlannedKernel>>;

/// Step 2 of a prediction: plans the kernels of a binding, equal ones once; `plans` may be those of another binding.
void plan_kernels(const PreparedModel& prepared, const BoundShapes& bound, KernelPlans& plans);

/// Returns details of each kernel of a launch, for explanations; `slowdown` as in LaunchTimes.
[[nodiscard]] std::vector<KernelDetail> kernel_details(const PreparedModel& prepared, const BoundShapes& bound,
                                                       const KernelPlans& plans, double slowdown, const Launch& launch);

/// Times of the schedule's launches; the first entry is the forward call itself.
struct LaunchTimes {
    std::vector<LaunchCosts> costs;      ///< components of each cost, see PreparedModel::first_equal_launch
    std::vector<TimedLaunch> on_clocks;  ///< input of the timeline
    double follows_s = 0;                ///< host time after the pass, if the engine schedules ahead
    double slowdown = 0;                 ///< caused by the power limit, see PassPower
};

/// Step 3 of a prediction: computes the dispatch time of each launch and its kernels' time under the power limit.
void time_launches(const PreparedModel& prepared, const BoundShapes& bound, const ShapeBindings& bindings,
                   const KernelPlans& plans, LaunchTimes& times);

/// Sets the 5 % and 95 % quantiles of the maximum of host and device time, both with log-normal errors.
void set_interval(Prediction& result);

/// Step 4 of a prediction: computes latency, bound, power, interval, coverage and warnings. `spans` is a buffer for the
/// timeline; `explanation`, if not null, gets the parts of the interval and the evidence.
[[nodiscard]] Prediction summarise(const PreparedModel& prepared, const BoundShapes& bound,
                                   const ShapeBindings& bindings, const KernelPlans& plans, const LaunchTimes& times,
                                   std::vector<Span>& spans, Explanation* explanation = nullptr);

}  // namespace ftax
