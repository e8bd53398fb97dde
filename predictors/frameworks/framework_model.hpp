#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "ftax/framework.hpp"
#include "predictors/lowering/lowering.hpp"

namespace ftax {

/// Initial value of a host parameter that differs from eager PyTorch's (host_parameter_spec).
struct HostPrior {
    std::string_view parameter;
    double value;
};

struct PassLimits {
    int before_torch = 0;                  ///< PyTorch versions before this one (LibraryVersions); 0: all
    int from_tensorrt = 0, from_chip = 0;  ///< TensorRT version; 10 · compute capability
    bool in_f32_only = false;
};

struct Pass {
    constexpr Pass() = default;
    constexpr Pass(void (*pass)(Graph&), PassLimits where = {}) : rewrite(pass), limits(where) {}
    [[nodiscard]] bool applies(const DeviceSpec& device, const PredictOptions& options) const;

    void (*rewrite)(Graph&) = nullptr;
    PassLimits limits{};
};

/// One framework: graph rewrites, and the way the rewritten operators are launched. Each framework that the command
/// line offers has its own file in predictors/frameworks/ and an entry in the table of framework_model.cpp.
struct FrameworkModel {
    std::string_view name;
    std::string_view description;
    LoweringTraits traits;
    std::span<const Pass> rewrites;  ///< in order
    /// Devices below this compute capability run the graph without rewrites.
    int rewrites_from_compute_capability_major = 0;
    std::span<const HostPrior> priors = {};
    /// Device memory before a model is loaded: CUDA context and loaded kernels. Order of magnitude; depends on the
    /// driver and on the kernels that a run loads.
    double context_bytes = 500e6;
    /// Model families with measured rows that validate the rules (data/ledger); others are predicted with a warning.
    struct Families {
        bool convolutional = false, transformers = false;
    };
    Families measured{};
};

/// Throws Error{usage} listing the frameworks if there is none of that name.
[[nodiscard]] const FrameworkModel& framework_model(std::string_view name);
[[nodiscard]] std::span<const FrameworkModel* const> framework_models();
/// Returns the model of a profile: its own, or the named entry of the table. Throws Error{usage} if there is none of
/// that name.
[[nodiscard]] const FrameworkModel& model_of(const FrameworkProfile& profile);

/// Creates a profile for a framework that is not in the table, with initial host costs. It refers to `model`, which
/// must outlive every predictor of the profile.
[[nodiscard]] FrameworkProfile framework_profile(const FrameworkModel& model);
FrameworkProfile framework_profile(const FrameworkModel&& temporary) = delete;

/// Returns the model's family ("transformer", "convolutional network") if no measured row of it validates the
/// framework's rules; empty otherwise.
[[nodiscard]] std::string_view unmeasured_family(const FrameworkModel& model, const Graph& graph);

/// Returns true if the library version is at least `from`.
[[nodiscard]] inline bool has(const LibraryVersions& libraries, const std::optional<int>& from) {
    return from && libraries.engine >= *from;
}

/// Returns true if each run waits for the previous one, because of the options or the framework. An engine that
/// schedules ahead never waits.
[[nodiscard]] inline bool synchronizes_runs(const FrameworkModel& model, const PredictOptions& options) {
    return !has(options.libraries, model.traits.schedules_ahead_from) &&
           (options.synchronized || model.traits.synchronizes_runs);
}

/// Returns the graph in the requested layout after the framework's optimiser; nullopt if neither changes it.
[[nodiscard]] std::optional<Graph> optimised_graph(const Graph& graph, const FrameworkModel& model,
                                                   const DeviceSpec& device, const PredictOptions& options);

}  // namespace ftax
