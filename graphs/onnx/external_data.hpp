#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graphs/onnx/records.hpp"

namespace ftax::onnx_import {

/// Reads `count` bytes of a small external tensor whose value a shape depends on. The file must lie below the model's
/// directory, be reached without symbolic links, and be a regular file with one name.
/// Returns nullopt when it does not exist (a graph without its weights).
/// Throws Error{refused} for any other place or kind of file, Error{model} when the range ends beyond the file.
[[nodiscard]] std::optional<std::string> read_external_data(const ExternalData& data, const std::string& directory,
                                                            std::int64_t count);

}  // namespace ftax::onnx_import
