#include "predictors/kernels/kernel_models.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "predictors/kernels/profile_parameters.hpp"
#include "src/core/throw_error.hpp"

namespace ftax {

KernelParameters kernel_parameters(const DeviceProfile& profile) {
    KernelParameters parameters;
    std::vector<std::string_view> names;
    visit_parameters(parameters, profile.device, [&](std::string_view name, double& value, const ParameterSpec& spec) {
        value = profile_value(profile.parameters, profile.device.slug, name, spec);
        names.push_back(name);
    });
    for (const Parameter& p : profile.parameters) {
        if (std::find(names.begin(), names.end(), p.name) == names.end()) {
            throw_error(ErrorCode::profile, "{}: no kernel model has a parameter {}", profile.device.slug, p.name);
        }
    }
    return parameters;
}

}  // namespace ftax
