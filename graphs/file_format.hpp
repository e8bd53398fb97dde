#pragma once

#include <string_view>

namespace ftax {

/// What a model file is, told by its first bytes, never by its name.
enum class FileFormat { empty, zip, pickle, text, json, onnx, hdf5, gguf, safetensors, gzip, elf, unknown };

[[nodiscard]] FileFormat format_of(std::string_view bytes) noexcept;
/// Describes the format for a message: "a ZIP archive".
[[nodiscard]] std::string_view description_of(FileFormat format) noexcept;

}  // namespace ftax
