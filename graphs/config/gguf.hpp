#pragma once

#include <string>
#include <string_view>

namespace ftax {

/// Returns the config.json that the header of a GGUF file amounts to (ggml-org/ggml, docs/gguf.md; versions 2 and 3),
/// with the format of the weights as its quantization_config. `graphs/config/gguf.txt` lists the architectures, fields
/// and formats. Throws Error{model} naming the file and the byte or the key.
[[nodiscard]] std::string config_of_gguf(std::string_view bytes, const std::string& origin);

}  // namespace ftax
