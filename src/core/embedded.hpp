#pragma once

#include <span>
#include <string_view>

namespace ftax {

struct EmbeddedFile {
    std::string_view path;  ///< relative to the repository: "data/devices/tesla-t4.json"
    std::string_view content;
};

/// All embedded files, sorted by path.
[[nodiscard]] std::span<const EmbeddedFile> embedded_files();

/// The JSON files of data/ as pack() writes them, sorted by path. An architecture has the fields that it inherits; a
/// chip with fields of its own is at "data/architectures/NAME.json#COMPUTE_CAPABILITY".
[[nodiscard]] std::span<const EmbeddedFile> packed_files();

/// Return the content of the embedded file, or packed document, at that path; empty if there is none.
[[nodiscard]] std::string_view embedded_text(std::string_view path);
[[nodiscard]] std::string_view packed_document(std::string_view path);

}  // namespace ftax
