#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ftax/framework.hpp"
#include "ftax/parameter.hpp"

namespace ftax {

/// What host costs of one version of a framework are over those of the version that its profiles were fitted to.
struct VersionRatios {
    std::string framework;
    int version = 0;                ///< as version_number() has it
    double shared_log_stddev = 0;   ///< of what all kinds of operations of a host have in common
    double model_log_stddev = 0;    ///< of what differs between models
    std::vector<Parameter> ratios;  ///< by the name of the profile's parameter, sorted; others keep their value
};

/// Parses data/profiles/versions.json: sorted by framework, then version.
/// Throws Error{profile} naming the path to the field: no version, out of order, a ratio that is not positive.
[[nodiscard]] std::vector<VersionRatios> parse_versions(std::string_view text, const std::string& origin);

/// Multiplies the profile's host costs; what is not known of the ratios widens what is believed of the host's scale,
/// and the spread between models.
[[nodiscard]] FrameworkProfile carried(FrameworkProfile profile, const VersionRatios& version);

}  // namespace ftax
