#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "ftax/device.hpp"
#include "ftax/framework.hpp"
#include "ftax/predict.hpp"
#include "ftax/types.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/profiles/parameters.hpp"
#include "predictors/timeline/launch_costs.hpp"

namespace ftax {

/// CPU time per scheduled operation of each kind, in seconds, for one framework, host and precision.
struct HostCosts {
    std::array<double, host_kind_count> seconds{};
    double blas_call_s = 0;            ///< added to operators that call cuBLAS
    double step_launch_s = 0;          ///< per kernel of a call that launches kernels at every step of a sequence
    double launch_latency_s = 0;       ///< end of a launch call to earliest start of the kernel
    double kernel_gap_s = 0;           ///< between consecutive kernels of a stream
    double model_relative_stddev = 0;  ///< of a model's host time, given the scalars
    double scale_relative_stddev = 0, call_relative_stddev = 0;  ///< uncertainty of the scalars
    double correlation = 0;                                      ///< between their logarithms
    double device_relative_stddev = 0;                           ///< a model's device time

    /// Returns the uncertainty of a model's host time if `call_share` of it is calls (second scalar), to first order.
    [[nodiscard]] double host_relative_stddev(double call_share) const;
    [[nodiscard]] double operator[](HostKind kind) const { return seconds[static_cast<std::size_t>(kind)]; }
};

/// Composes the costs: shared cost per kind × host scale × half-precision factor of the kind; the host's second scalar
/// is separate. Parameters not set by the profile keep their initial values. The host takes `slowdown` times as long.
[[nodiscard]] HostCosts host_costs(const FrameworkProfile& profile, Precision precision, double slowdown = 1);

/// Returns the time between consecutive kernels: that of the device's generation if it was measured, else the
/// profile's; 0 on a CPU, which launches none, and where kernels are launched early. A measured host and a server of
/// language models have gaps that were fitted with their kernels, an engine's are cycles.
[[nodiscard]] double kernel_gap_s(const FrameworkProfile& profile, const LibraryVersions& libraries,
                                  const DeviceSpec& device);

/// The costs beside that device: on its own CPU where it has one, with its time between kernels.
[[nodiscard]] HostCosts host_costs(const FrameworkProfile& profile, const PredictOptions& options,
                                   const DeviceSpec& device);

/// Returns the name of a host's second scalar: the cost of the call whose speed does not follow the host's scale, a
/// cuBLAS heuristic query or, if the framework calls engines, an engine call.
[[nodiscard]] std::string_view second_scalar(const FrameworkModel& framework);

/// Returns true if an operator's host time includes that call.
[[nodiscard]] inline bool pays_second_scalar(const LaunchCosts& op) {
    return op.blas_call || op.host_kind == HostKind::engine_call;
}

/// Returns a parameter's value: from the profile, else the framework's prior, else its initial value; 1 for others.
[[nodiscard]] double host_parameter(const FrameworkProfile& profile, std::string_view name);

/// Returns the spec of a host-model parameter, initially the framework's prior; nullopt for unknown names.
[[nodiscard]] std::optional<ParameterSpec> host_parameter_spec(const FrameworkModel& framework, std::string_view name);

}  // namespace ftax
