#include "graphs/files/escape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace ftax {
namespace {

struct CodePoint {
    char32_t value = 0;
    std::size_t bytes = 0;  ///< 0 when the text does not start with valid UTF-8
};

/// Source: RFC 3629, section 4 (no overlong forms, no surrogates, nothing above U+10FFFF).
CodePoint first_code_point(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) < 0x80) return {byte(0), 1};
    const std::size_t bytes = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
    if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < bytes) return {};
    char32_t value = byte(0) & (0xffu >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return {};
        value = value << 6 | (byte(i) & 0x3f);
    }
    const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
    const bool surrogate = value >= 0xd800 && value <= 0xdfff;
    if (overlong || surrogate || value > 0x10ffff) return {};
    return {value, bytes};
}

/// Characters that reorder or break a line without being seen. Source: Unicode TR 36, "Trojan Source" (CVE-2021-42574).
bool is_invisible_layout(char32_t c) {
    return (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

}  // namespace

std::string escape_terminal(std::string_view text) {
    if (std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; })) return std::string(text);
    std::string result;
    result.reserve(text.size());
    while (!text.empty()) {
        CodePoint c = first_code_point(text);
        const bool is_invalid = c.bytes == 0;
        if (is_invalid) c = {static_cast<unsigned char>(text[0]), 1};
        if (c.value == '\n') {
            result += "\\n";
        } else if (c.value == '\t') {
            result += "\\t";
        } else if (c.value == '\r') {
            result += "\\r";
        } else if (is_invalid || c.value < 0x20 || (c.value >= 0x7f && c.value < 0xa0)) {
            result += fmt::format("\\x{:02x}", static_cast<unsigned>(c.value));
        } else if (is_invisible_layout(c.value)) {
            result += fmt::format("\\u{{{:x}}}", static_cast<unsigned>(c.value));
        } else {
            result += text.substr(0, c.bytes);
        }
        text.remove_prefix(c.bytes);
    }
    return result;
}

}  // namespace ftax
