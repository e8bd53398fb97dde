#pragma once

#include <span>

#include "ftax/architecture.hpp"

namespace ftax {

/// Reads the embedded file data/architectures/NAME.json. A file `inherits` missing fields from another one, and its
/// `chips` override the generation for one compute capability (both by RFC 7386 JSON merge). A CPU has an empty
/// specification.
/// Throws Error{profile} naming file and field.
[[nodiscard]] ArchitectureSpec read_architecture(Architecture architecture, int compute_capability_major,
                                                 int compute_capability_minor);

/// Returns the architectures whose fitted values are used for one without its own, nearest first.
[[nodiscard]] std::span<const Architecture> kin_of(Architecture architecture);

}  // namespace ftax
