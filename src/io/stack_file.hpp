#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/framework.hpp"
#include "ftax/parameter.hpp"
#include "ftax/predict.hpp"

namespace ftax {

/// A measured version of a framework (data/stacks): its libraries and host costs.
struct Stack {
    std::vector<std::string> frameworks;  ///< all modes of a framework with equal host costs
    int version = 0;                      ///< see version_number()
    LibraryVersions libraries;            ///< libraries determined by the version; others keep their defaults
    double scale_log_stddev = 0;          ///< spread of host scales, or its increase by the ratios
    double model_log_stddev = 0;          ///< increase of the noise between models by the ratios
    std::string reference_cpu;            ///< see FrameworkProfile
    std::vector<HostGroup> groups;        ///< of measured machines
    std::vector<Parameter> costs;         ///< values of profile parameters, sorted by name
    std::vector<Parameter> ratios;        ///< factors on parameters of the framework's fitted profile, sorted by name

    [[nodiscard]] bool is_of(std::string_view framework) const {
        return std::ranges::find(frameworks, framework) != frameworks.end();
    }
};

/// Parses a file of data/stacks.
/// Throws Error{profile} naming the path to the field: missing version, unknown library, non-positive cost.
[[nodiscard]] Stack parse_stack(std::string_view text, const std::string& origin);

/// Replaces the profile's costs by those of a stack. `relative_scale`: host scale of the profile relative to the
/// framework's reference host.
[[nodiscard]] FrameworkProfile on_stack(FrameworkProfile profile, const Stack& stack, double relative_scale = 1);

}  // namespace ftax
