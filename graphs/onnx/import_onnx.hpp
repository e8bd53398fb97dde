#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ftax/import.hpp"

namespace ftax {

/// Imports an ONNX model from its bytes. `path` names it in messages and locates external data; `release` releases
/// memory of processed bytes (see MappedFile). `keep_batch` keeps a leading dimension that the file fixes, regardless
/// of the given shapes: the caller makes it variable. Throws Error with code model, limit, refused, or usage if an
/// input has no shape.
[[nodiscard]] Graph import_onnx(std::string_view bytes, const std::string& path, const ImportOptions& options,
                                const std::function<void()>& release = {}, bool keep_batch = false);

}  // namespace ftax
