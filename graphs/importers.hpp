#pragma once

#include <string>
#include <string_view>

#include "ftax/import.hpp"

namespace ftax {

/// Imports an ONNX model from its bytes. `path` names it in messages and is where external data is looked for.
/// Throws Error with code model, limit, refused, or usage when an input has no shape.
[[nodiscard]] Graph import_onnx(std::string_view bytes, const std::string& path, const ImportOptions& options);

/// Tells whether bytes that are no known other format may be a ModelProto.
[[nodiscard]] bool looks_like_onnx(std::string_view bytes) noexcept;

}  // namespace ftax
