#pragma once

#include <optional>
#include <string_view>

#include "ftax/framework.hpp"

namespace ftax {

/// A version as 100 · major + minor: 204 of "2.4", "2.4.1" and "2.4-nightly"; nullopt for what is none.
[[nodiscard]] std::optional<int> version_number(std::string_view text);

/// Carries host costs over to another version of the framework, as version_number() has it: by what the dispatch of
/// each kind of operation costs the CPU in either (data/profiles/versions.json), of the newest measured version that is
/// not newer. A profile whose own version is the newest such, or of a framework of which no versions were measured, is
/// returned as it is. Throws Error{profile} for an invalid file in FTAX_DATA.
[[nodiscard]] FrameworkProfile at_version(FrameworkProfile profile, int version);
/// Whether at_version() knows versions of a framework.
[[nodiscard]] bool has_versions(std::string_view framework);

}  // namespace ftax
