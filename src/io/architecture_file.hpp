#pragma once

#include <span>

#include "ftax/architecture.hpp"

namespace ftax {

/// Reads data/architectures/NAME.json, embedded in the program: what a file does not say it has from the one it
/// `inherits` from, and what its `chips` say of a compute capability stands before what it says of the generation
/// (both as RFC 7386 merges JSON). A CPU has an empty specification.
/// Throws Error{profile} naming file and field.
[[nodiscard]] ArchitectureSpec read_architecture(Architecture architecture, int compute_capability_major,
                                                 int compute_capability_minor);

/// Architectures whose fitted values stand in for those of one that has none, nearest first.
[[nodiscard]] std::span<const Architecture> kin_of(Architecture architecture);

}  // namespace ftax
