#pragma once

#include <string_view>

#include "ftax/device.hpp"
#include "ftax/parameter.hpp"

namespace ftax {

/// Returns the profile's value of a parameter, or its initial value where the profile does not set it.
/// Throws Error{profile} when the value lies outside the bounds that the model declares.
[[nodiscard]] double profile_value(const DeviceProfile& profile, std::string_view name, const ParameterSpec& spec);

/// Fills the parameters of a model (anything with visit_parameters) from a profile.
/// Throws what profile_value throws.
template <class Parameters>
[[nodiscard]] Parameters profile_parameters(const DeviceProfile& profile) {
    Parameters parameters;
    visit_parameters(parameters, [&](std::string_view name, double& value, const ParameterSpec& spec) {
        value = profile_value(profile, name, spec);
    });
    return parameters;
}

}  // namespace ftax
