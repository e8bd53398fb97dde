#pragma once

#include <string_view>

#include "predictors/kernels/kernel_models.hpp"

namespace ftax::test {

/// A card with the initial values of its models: what its datasheet alone says.
inline KernelModels unfitted(std::string_view device) {
    DeviceProfile profile;
    profile.device = device_spec(device);
    return {profile.device, kernel_parameters(profile)};
}

/// A card with the values that ftax ships.
inline KernelModels fitted(std::string_view device) {
    const DeviceProfile profile = device_profile(device);
    return {profile.device, kernel_parameters(profile)};
}

}  // namespace ftax::test
