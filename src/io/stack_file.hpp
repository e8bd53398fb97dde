#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/framework.hpp"
#include "ftax/parameter.hpp"
#include "ftax/predict.hpp"

namespace ftax {

/// One version of a framework as it was measured (data/stacks): the libraries that it brings, and its host costs.
struct Stack {
    std::vector<std::string> frameworks;  ///< for modes of one framework that cost the host alike, all of them
    int version = 0;                      ///< as version_number() has it
    LibraryVersions libraries;            ///< those that the version decides; others keep their defaults
    double scale_log_stddev = 0;          ///< spread of host scales, or what the ratios add to it
    double model_log_stddev = 0;          ///< what the ratios add to the noise between models
    std::vector<Parameter> costs;         ///< values of profile parameters, sorted by name
    std::vector<Parameter> ratios;        ///< factors on parameters of the framework's fitted profile, sorted by name

    [[nodiscard]] bool is_of(std::string_view framework) const {
        return std::find(frameworks.begin(), frameworks.end(), framework) != frameworks.end();
    }
};

/// Parses a file of data/stacks.
/// Throws Error{profile} naming the path to the field: no version, an unknown library, a cost that is not positive.
[[nodiscard]] Stack parse_stack(std::string_view text, const std::string& origin);

/// Puts the costs of a stack in place of the profile's. `relative_scale` is the profile's host scale over that of the
/// framework's reference host.
[[nodiscard]] FrameworkProfile on_stack(FrameworkProfile profile, const Stack& stack, double relative_scale = 1);

}  // namespace ftax
