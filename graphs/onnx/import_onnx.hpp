#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ftax/import.hpp"

namespace ftax {

/// Imports an ONNX model from its bytes. `path` names it in messages and is where external data is looked for;
/// `release` gives back the memory of bytes already looked at (see MappedFile).
/// Throws Error with code model, limit, refused, or usage when an input has no shape.
[[nodiscard]] Graph import_onnx(std::string_view bytes, const std::string& path, const ImportOptions& options,
                                const std::function<void()>& release = {});

}  // namespace ftax
