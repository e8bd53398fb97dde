#include "graphs/pt2/json_document.hpp"

#include <fmt/format.h>

#include "ftax/error.hpp"

namespace ftax {
namespace {

constexpr int max_depth = 200;

/// Deepest nesting of brackets outside of strings, found without building anything.
int nesting_depth(std::string_view text) {
    int depth = 0, deepest = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') ++i;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            deepest = std::max(deepest, ++depth);
        } else if (c == ']' || c == '}') {
            --depth;
        }
    }
    return deepest;
}

}  // namespace

nlohmann::json parse_json_document(std::string_view text, std::string_view origin) {
    if (nesting_depth(text) > max_depth) {
        throw Error(ErrorCode::limit, fmt::format("{}: JSON nested deeper than {} levels", origin, max_depth));
    }
    try {
        return nlohmann::json::parse(text);
    } catch (const nlohmann::json::exception& error) {
        throw Error(ErrorCode::model, fmt::format("{}: {}", origin, error.what()));
    }
}

}  // namespace ftax
