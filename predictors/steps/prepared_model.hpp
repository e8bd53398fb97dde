#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ftax/predict.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/kernels/device_model.hpp"
#include "predictors/timeline/schedule.hpp"
#include "predictors/timeline/timeline.hpp"

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

}  // namespace ftax
