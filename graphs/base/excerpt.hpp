#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ftax {

/// Shortens text from a file for error messages to at most 40 characters (bytes, whole UTF-8 code points), keeping its
/// beginning and end. Unprintable characters are escaped when the error is printed.
[[nodiscard]] inline std::string excerpt(std::string_view text) {
    constexpr std::size_t longest = 40, beginning = 24, ending = 13;
    if (text.size() <= longest) return std::string(text);
    const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80; };
    std::size_t left = beginning, right = text.size() - ending;
    while (left > 0 && continues(left)) --left;
    while (right < text.size() && continues(right)) ++right;
    return std::string(text.substr(0, left)) + "…" + std::string(text.substr(right));
}

/// The parts of a text between separators; there is none after the last separator.
[[nodiscard]] inline std::vector<std::string_view> words_of(std::string_view text, char separator = ' ') {
    std::vector<std::string_view> words;
    words.reserve(static_cast<std::size_t>(std::ranges::count(text, separator)) + 1);
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        words.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return words;
}

/// Returns what comes before the first separator, and what comes after it: nothing without one.
[[nodiscard]] inline std::pair<std::string_view, std::string_view> split_at(std::string_view text, char separator) {
    const std::size_t at = std::min(text.find(separator), text.size());
    return {text.substr(0, at), text.substr(std::min(at + 1, text.size()))};
}

}  // namespace ftax
