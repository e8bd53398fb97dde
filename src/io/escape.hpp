#pragma once

#include <string>
#include <string_view>

namespace ftax {

/// Makes text that came from a file safe to print: control characters, DEL, line separators, bidirectional overrides
/// and bytes that are not UTF-8 become visible escapes (`\n`, `\x1b`, `\u{202e}`); everything else stays as it is.
[[nodiscard]] std::string escape_terminal(std::string_view text);

}  // namespace ftax
