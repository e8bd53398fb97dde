#pragma once

#include <optional>
#include <string_view>

#include "ftax/framework.hpp"
#include "ftax/predict.hpp"

namespace ftax {

/// Returns a version as 100 · major + minor: 204 for "2.4", "2.4.1" and "2.4-nightly"; nullopt if it is not a version.
/// Versions of llama.cpp are years and months: 202405 for "2024-05".
[[nodiscard]] std::optional<int> version_number(std::string_view text);

/// Returns the profile with the host costs of another framework version (see version_number()), taken from the nearest
/// measured version (data/stacks, or the profile's own version). If that is not the requested version, adds a warning
/// and widens the uncertainty of the host's scale. Returns the profile unchanged if no version was measured.
/// Throws Error{profile} for an invalid file in FTAX_DATA.
[[nodiscard]] FrameworkProfile at_version(FrameworkProfile profile, int version);

/// Sets the framework's version and the libraries of the nearest measured version; keeps a non-default cuDNN.
void set_libraries(LibraryVersions& libraries, std::string_view framework, int version);

/// Returns the newest measured version of the framework (data/stacks, or its profile's); nullopt if none was measured.
[[nodiscard]] std::optional<int> newest_version(std::string_view framework);

}  // namespace ftax
