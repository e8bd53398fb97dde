#pragma once

#include <span>
#include <string_view>

#include "ftax/framework.hpp"
#include "ftax/parameter.hpp"

namespace ftax {

/// Returns the value of a parameter in a profile's parameters (sorted by name), or its initial value if not set. Throws
/// Error{profile} naming the owner for a value outside the declared bounds.
[[nodiscard]] double profile_value(std::span<const Parameter> parameters, std::string_view owner, std::string_view name,
                                   const ParameterSpec& spec);

/// Fills the parameters of a model (any type with visit_parameters) from a profile. Throws what profile_value throws.
template <class Parameters>
[[nodiscard]] Parameters profile_parameters(const FrameworkProfile& profile) {
    Parameters parameters;
    visit_parameters(parameters, [&](std::string_view name, double& value, const ParameterSpec& spec) {
        value = profile_value(profile.parameters, profile.host, name, spec);
    });
    return parameters;
}

}  // namespace ftax
