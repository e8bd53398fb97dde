#pragma once

#include <string>

namespace ftax {

/// Quotes the infinities and NaN of torch 2.4 to 2.6, which like Python's json write `-Infinity`, invalid JSON; later
/// versions write "-Infinity". Leaves strings unchanged.
[[nodiscard]] std::string quote_non_finite(std::string json);

}  // namespace ftax
