#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace ftax {

/// Parses JSON from an untrusted file. `origin` names it in errors.
/// Throws Error{model} for malformed text and numbers outside double, Error{limit} beyond 200 levels of nesting.
[[nodiscard]] nlohmann::json parse_json_document(std::string_view text, std::string_view origin);

}  // namespace ftax
