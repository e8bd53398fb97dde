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
    bool LibraryBehaviour::*when = nullptr;  ///< a rule of the libraries; nullptr: always
    bool LibraryBehaviour::*unless = nullptr;
    bool in_f32_only = false;
};

struct Pass {
    constexpr Pass() = default;
    constexpr Pass(void (*pass)(Graph&), PassLimits where = {}) : rewrite(pass), limits(where) {}
    [[nodiscard]] bool applies(const PredictOptions& options, const LibraryBehaviour& libraries) const;

    void (*rewrite)(Graph&) = nullptr;
    PassLimits limits{};
};

/// How an engine schedules sequences.
struct ServingTraits {
    std::int64_t most_captured_sequences = 0;  ///< largest batch of a CUDA graph of decoding steps
    std::int64_t tokens_per_pass = 0;          ///< prompt tokens per pass; 0: unlimited
    bool splits_prompts = false;               ///< prompts longer than a pass are split
    bool splits_tensors = true;                ///< supports tensor parallelism
    bool evicts_sequences = false;  ///< sequences out of memory wait while others run; else all start together
    double frontend_s = 0;          ///< see SchedulerOptions
};

/// One framework: graph rewrites, and the way the rewritten operators are launched. Each framework that the command
/// line offers is in a file of predictors/frameworks/ and has an entry in the table of framework_model.cpp.
struct FrameworkModel {
    std::string_view name;
    std::string_view description;
    LoweringTraits traits;
    ServingTraits serving{};
    std::span<const Pass> rewrites;  ///< in order
    std::span<const HostPrior> priors = {};
    /// Device memory before a model is loaded: CUDA context and loaded kernels. Order of magnitude; depends on the
    /// driver and on the kernels that a run loads.
    double context_bytes = 500e6;
};

/// Throws Error{usage} listing the frameworks if there is none of that name.
[[nodiscard]] const FrameworkModel& framework_model(std::string_view name);
[[nodiscard]] std::span<const FrameworkModel* const> framework_models();
/// Returns the model of a profile: its own, or the named entry of the table. Throws Error{usage} for unknown names.
[[nodiscard]] const FrameworkModel& model_of(const FrameworkProfile& profile);

/// Creates a profile for a framework that is not in the table, with initial host costs. It refers to `model`, which
/// must outlive every predictor of the profile.
[[nodiscard]] FrameworkProfile framework_profile(const FrameworkModel& model);
FrameworkProfile framework_profile(const FrameworkModel&& temporary) = delete;

/// Returns what the libraries of a run do under a framework.
[[nodiscard]] inline LibraryBehaviour behaviour_of(const FrameworkModel& model, const LibraryVersions& libraries,
                                                   const DeviceSpec& device = {}) {
    return behaviour_of(libraries, model.traits.library, device);
}

/// Returns the version of the library that decides a framework's rules, 0 if it is not specified.
[[nodiscard]] inline int deciding_version(const FrameworkModel& model, const LibraryVersions& versions) {
    return model.traits.library != Library::none ? versions.engine
           : model.traits.engine                 ? versions.tensorrt
                                                 : versions.torch;
}

/// Returns true if each run waits for the previous one, by option or framework; engines that schedule ahead never do.
[[nodiscard]] inline bool synchronizes_runs(const FrameworkModel& model, const PredictOptions& options) {
    return !behaviour_of(model, options.libraries).schedules_ahead &&
           (options.synchronized || model.traits.synchronizes_runs);
}

/// Returns the graph in the requested layout after the framework's optimiser; nullopt if neither changes it.
[[nodiscard]] std::optional<Graph> optimised_graph(const Graph& graph, const FrameworkModel& model,
                                                   const DeviceSpec& device, const PredictOptions& options);

}  // namespace ftax
