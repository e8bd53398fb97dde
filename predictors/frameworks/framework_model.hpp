#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ftax/framework.hpp"
#include "predictors/lowering/lowering.hpp"

namespace ftax {

/// Where a framework's host parameter starts when it differs from eager PyTorch's (host_parameter_spec).
struct HostPrior {
    std::string_view parameter;
    double value;
};

/// One framework: rewrites of the graph, then how the rewritten operators are launched. Those that have a name on the
/// command line live in a file of their own each under predictors/frameworks/ and stand in the table of
/// framework_model.cpp.
struct FrameworkModel {
    std::string_view name;
    std::string_view description;
    LoweringTraits traits;
    /// Graph passes in order; each changes the graph as the framework's optimiser would.
    std::span<void (*const)(Graph&)> rewrites;
    /// The passes for half precision where they are others; empty: the same.
    std::span<void (*const)(Graph&)> half_rewrites = {};
    /// The passes of older versions (LibraryVersions) and of chips (10 · compute capability) for which newer ones have
    /// no kernels either.
    struct OlderPasses {
        int before_version = 0, below_chip = 0;
        std::span<void (*const)(Graph&)> rewrites;
    };
    std::span<const OlderPasses> older_rewrites = {};
    /// Devices below this compute capability run the graph as it stands.
    int rewrites_from_compute_capability_major = 0;
    std::span<const HostPrior> priors = {};
    /// Device memory that the process holds before a model is loaded: the CUDA context, kernels as they are loaded.
    /// Order of magnitude; it grows with the driver and with the kernels that a run calls.
    double context_bytes = 500e6;
    /// Families of models of which measured rows stand behind the rules (data/ledger); others are predicted with a
    /// warning.
    struct Families {
        bool convolutional = false, transformers = false;
    };
    Families measured{};
};

/// Throws Error{usage} listing the frameworks when there is none of that name.
[[nodiscard]] const FrameworkModel& framework_model(std::string_view name);
[[nodiscard]] std::span<const FrameworkModel* const> framework_models();
/// Returns the model of a profile: its own, or the one of the table that it names. Throws Error{usage} when there is
/// none of that name.
[[nodiscard]] const FrameworkModel& model_of(const FrameworkProfile& profile);

/// Makes the profile of a framework that is not in the table, its host costs at their start values. It refers to
/// `model`, which must outlive every predictor of the profile.
[[nodiscard]] FrameworkProfile framework_profile(const FrameworkModel& model);
FrameworkProfile framework_profile(const FrameworkModel&& temporary) = delete;

/// Names the model's family ("transformer", "convolutional network") where none of its rows stands behind the
/// framework's rules; empty where some do.
[[nodiscard]] std::string_view unmeasured_family(const FrameworkModel& model, const Graph& graph);

/// Whether the version of the libraries has what a framework does `from` a version on.
[[nodiscard]] inline bool has(const LibraryVersions& libraries, const std::optional<int>& from) {
    return from && libraries.engine >= *from;
}

/// Whether runs wait for one another: asked for, or the framework's way. An engine that schedules ahead never waits.
[[nodiscard]] inline bool synchronizes_runs(const FrameworkModel& model, const PredictOptions& options) {
    return !has(options.libraries, model.traits.schedules_ahead_from) &&
           (options.synchronized || model.traits.synchronizes_runs);
}

/// The graph in the layout asked for and as the framework's optimiser leaves it; nullopt where neither touches it.
[[nodiscard]] std::optional<Graph> optimised_graph(const Graph& graph, const FrameworkModel& model,
                                                   const DeviceSpec& device, const PredictOptions& options);

}  // namespace ftax
