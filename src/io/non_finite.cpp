#include "src/io/non_finite.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace ftax {
namespace {

constexpr std::array<std::string_view, 3> words{"-Infinity", "Infinity", "NaN"};

/// Returns the end of the string that starts after the quote at `begin`.
std::size_t text_end(std::string_view json, std::size_t begin) {
    for (std::size_t i = begin; i < json.size(); ++i) {
        if (json[i] == '\\') {
            ++i;
        } else if (json[i] == '"') {
            return i + 1;
        }
    }
    return json.size();
}

}  // namespace

std::string quote_non_finite(std::string json) {
    const auto occurs = [&](std::string_view word) { return json.find(word) != std::string::npos; };
    if (!occurs("Infinity") && !occurs("NaN")) return json;
    std::string result;
    for (std::size_t i = 0; i < json.size();) {
        const std::string_view rest = std::string_view(json).substr(i);
        const auto word = std::ranges::find_if(words, [&](auto w) { return rest.starts_with(w); });
        if (word != words.end()) {
            result += '"';
            result += *word;
            result += '"';
            i += word->size();
            continue;
        }
        const std::size_t end = json[i] == '"' ? text_end(json, i + 1) : json.find_first_of("\"-IN", i + 1);
        result.append(json, i, end - i);
        i = std::min(end, json.size());
    }
    return result;
}

}  // namespace ftax
