#pragma once

#include <string>
#include <string_view>

namespace ftax::report {

/// Makes text safe inside HTML and SVG; control characters become visible escapes.
[[nodiscard]] std::string escape_markup(std::string_view text);

}  // namespace ftax::report
