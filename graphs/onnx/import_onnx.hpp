#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ftax/import.hpp"

namespace ftax {

/// Imports an ONNX model from its bytes. `path` names it in messages and is where external data is looked for;
/// `release` gives back the memory of bytes already looked at (see MappedFile). `keep_batch` leaves a leading dimension
/// that the file fixes as it is, whatever the shapes given say: the caller lets it vary.
/// Throws Error with code model, limit, refused, or usage when an input has no shape.
[[nodiscard]] Graph import_onnx(std::string_view bytes, const std::string& path, const ImportOptions& options,
                                const std::function<void()>& release = {}, bool keep_batch = false);

}  // namespace ftax
