#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "ftax/framework.hpp"
#include "ftax/predict.hpp"
#include "ftax/types.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/timeline/launch_costs.hpp"

namespace ftax {

/// Seconds the CPU spends per scheduled operation of each kind, resolved for one framework, host and precision.
struct HostCosts {
    std::array<double, host_kind_count> seconds{};
    double blas_call_s = 0;            ///< on top of an operator that goes through the BLAS library
    double step_launch_s = 0;          ///< for each kernel of a call that launches some at every step of a sequence
    double launch_latency_s = 0;       ///< from the end of a launch call to the earliest start of the kernel
    double kernel_gap_s = 0;           ///< between two kernels of a stream
    double model_relative_stddev = 0;  ///< of a model's host time once the scalars are known
    double scale_relative_stddev = 0, call_relative_stddev = 0;  ///< of the scalars
    double correlation = 0;                                      ///< of their logarithms
    double device_relative_stddev = 0;                           ///< of a model's device time

    /// Of a model's host time of which a share is calls: the second scalar. First order in the logarithms.
    [[nodiscard]] double host_relative_stddev(double call_share) const;
    [[nodiscard]] double operator[](HostKind kind) const { return seconds[static_cast<std::size_t>(kind)]; }
};

/// Composes the costs: shared cost per kind × host scalar × what the kind costs more under half precision; the second
/// scalar of a host stands beside them. Parameters that the profile does not set keep their initial
/// values.
[[nodiscard]] HostCosts host_costs(const FrameworkProfile& profile, Precision precision);

/// Name of the parameter that is a host's second scalar: the cost of the call that some hosts make much slower than the
/// rest of their work, a query of the BLAS library or, where a framework calls engines, the call of one.
[[nodiscard]] std::string_view second_scalar(const FrameworkModel& framework);

/// Whether an operator's host time holds that call.
[[nodiscard]] inline bool pays_second_scalar(const LaunchCosts& op) {
    return op.blas_call || op.host_kind == HostKind::engine_call;
}

/// Value of one parameter: the profile's, or its framework's prior, or its initial one; 1 for a name that the model
/// does not know (a factor).
[[nodiscard]] double host_parameter(const FrameworkProfile& profile, std::string_view name);

/// Puts a parameter into a list that is sorted by name, in place of the one of that name.
void set_parameter(std::vector<Parameter>& parameters, Parameter parameter);

/// The spec of one parameter of the host model with the framework's prior as its initial value; nullopt for a name
/// without a spec.
[[nodiscard]] std::optional<ParameterSpec> host_parameter_spec(const FrameworkModel& framework, std::string_view name);

}  // namespace ftax
