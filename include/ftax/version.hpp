#pragma once

#include <optional>
#include <string_view>

#include "ftax/framework.hpp"
#include "ftax/predict.hpp"

namespace ftax {

/// A version as 100 · major + minor: 204 of "2.4", "2.4.1" and "2.4-nightly"; nullopt for what is none.
[[nodiscard]] std::optional<int> version_number(std::string_view text);

/// Gives a profile the host costs of another version of its framework, as version_number() has it: those of the nearest
/// measured version (data/stacks, or the one that the profile was fitted to). Where that is not the version asked for,
/// a warning says so and the host's scale is less certain. Returns the profile as it is where no version was measured.
/// Throws Error{profile} for an invalid file in FTAX_DATA.
[[nodiscard]] FrameworkProfile at_version(FrameworkProfile profile, int version);

/// Notes a framework's version and the libraries of its nearest stack; a cuDNN other than the default stays.
void set_libraries(LibraryVersions& libraries, std::string_view framework, int version);

/// The newest version of the framework that was measured (data/stacks, or the one that its profile was fitted to);
/// nullopt where none was.
[[nodiscard]] std::optional<int> newest_version(std::string_view framework);

}  // namespace ftax
