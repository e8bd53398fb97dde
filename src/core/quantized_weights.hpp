#pragma once

#include <string_view>

namespace ftax {

/// Attribute of a layer whose weights a checkpoint keeps in a precision of their own: its name (ftax/precision.hpp).
inline constexpr std::string_view weights_attribute = "weights";

/// Attribute of the layer that computes logits: tokens are sampled without top-k and top-p.
inline constexpr std::string_view samples_all_attribute = "samples_all";

}  // namespace ftax
