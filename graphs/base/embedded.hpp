#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace ftax {

struct EmbeddedFile {
    std::string_view path;  ///< relative to the repository: "data/devices/tesla-t4.json"
    std::string_view content;
};

/// All embedded files, sorted by path.
[[nodiscard]] std::span<const EmbeddedFile> embedded_files();

/// Returns the content of the embedded file at that path; empty if there is none.
[[nodiscard]] inline std::string_view embedded_text(std::string_view path) {
    const std::span<const EmbeddedFile> files = embedded_files();
    const auto found = std::ranges::lower_bound(files, path, {}, &EmbeddedFile::path);
    return found != files.end() && found->path == path ? found->content : std::string_view{};
}

}  // namespace ftax
