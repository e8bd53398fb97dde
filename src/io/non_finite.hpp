#pragma once

#include <string>

namespace ftax {

/// Makes text of the infinities and NaN that torch 2.4 to 2.6 write as Python's json does, `-Infinity`, which is no
/// JSON; later versions write "-Infinity". Text is left alone.
[[nodiscard]] std::string quote_non_finite(std::string json);

}  // namespace ftax
