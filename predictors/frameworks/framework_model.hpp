#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "predictors/lowering/lowering.hpp"

namespace ftax {

/// Where a framework's host parameter starts when it differs from eager PyTorch's (host_parameter_spec).
struct HostPrior {
    std::string_view parameter;
    double value;
};

/// One framework: rewrites of the graph, then how the rewritten operators are launched. Each lives in a file of its own
/// under predictors/frameworks/ and stands in the table of framework_model.cpp.
struct FrameworkModel {
    std::string_view name;
    std::string_view description;
    LoweringTraits traits;
    /// Graph passes in order; each changes the graph as the framework's optimiser would.
    std::span<void (*const)(Graph&)> rewrites;
    /// The passes for half precision where they are others; empty: the same.
    std::span<void (*const)(Graph&)> half_rewrites = {};
    /// Devices below this compute capability run the graph as it stands.
    int rewrites_from_compute_capability_major = 0;
    std::span<const HostPrior> priors = {};
};

/// Throws Error{usage} listing the frameworks when there is none of that name.
[[nodiscard]] const FrameworkModel& framework_model(std::string_view name);
[[nodiscard]] std::span<const FrameworkModel* const> framework_models();
/// Adds a framework beside those of the table, for programs that bring their own; it must outlive every predictor. To
/// be called before other threads predict. Throws Error{usage} when the name is taken.
void add_framework(const FrameworkModel& model);

/// Whether runs wait for one another: asked for, or the framework's way.
[[nodiscard]] inline bool synchronizes_runs(const FrameworkModel& model, const PredictOptions& options) {
    return options.synchronized || model.traits.synchronizes_runs;
}

/// The graph in the layout asked for and as the framework's optimiser leaves it; nullopt where neither touches it.
[[nodiscard]] std::optional<Graph> optimised_graph(const Graph& graph, const FrameworkModel& model,
                                                   const DeviceSpec& device, const PredictOptions& options);

}  // namespace ftax
