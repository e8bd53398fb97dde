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

/// Step 1 of a prediction: a graph lowered for one device and framework. Nothing in it depends on a binding of symbols.
struct PreparedModel {
    /// Throws Error{usage} where the framework has no way to run the model. `source` must outlive it.
    PreparedModel(const Graph& source, DeviceProfile device_profile, FrameworkProfile framework_profile,
                  PredictOptions asked);
    PreparedModel(const PreparedModel&) = delete;
    PreparedModel& operator=(const PreparedModel&) = delete;

    /// Whether the host costs are those of the x86 reference, while the device comes with a CPU of its own.
    [[nodiscard]] bool has_foreign_host() const;
    [[nodiscard]] bool synchronized() const { return synchronizes_runs(model, options); }
    [[nodiscard]] TimelineOptions timeline_options() const;
    /// Binds the graph's symbols. Sequences of nested tensors are as long as their own tokens: on average the share
    /// that is not padding.
    void bind(const ShapeBindings& bindings, BoundShapes& bound) const;

    DeviceProfile device;
    FrameworkProfile framework;
    PredictOptions options;  ///< as executed: a builder without kernels of int8 takes those of f16
    const FrameworkModel& model;
    bool engine_is_channels_last;
    std::optional<Graph> own_graph;  ///< where the framework rewrites the source
    const Graph& graph;
    std::vector<bool> guessed;  ///< by operator
    std::size_t guesses;        ///< how many they are
    Schedule schedule;
    std::vector<std::uint32_t> first_equal, first_equal_launch;
    DeviceModel kernel_models;
    HostCosts costs;
    DType weights;         ///< the half-precision type of the source's weights; f32 where they have none
    bool widened = false;  ///< int8 is asked for, f16 executed
    bool quantised_by_file = false;
};

}  // namespace ftax
