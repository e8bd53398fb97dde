#pragma once

#include <string_view>

namespace ftax {

/// Attribute of a layer whose weights a checkpoint keeps in a precision of their own: its name (ftax/precision.hpp).
inline constexpr std::string_view weights_attribute = "weights";

}  // namespace ftax
