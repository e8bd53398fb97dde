#pragma once

#include <string>
#include <string_view>

namespace ftax {

/// Makes text from a file safe to print: control characters, DEL, line separators, bidirectional overrides
/// and bytes that are not UTF-8 become visible escapes (`\n`, `\x1b`, `\u{202e}`); everything else is unchanged.
[[nodiscard]] std::string escape_terminal(std::string_view text);

}  // namespace ftax
