#include "src/core/embedded.hpp"

#include <algorithm>

namespace ftax {

std::string_view embedded_text(std::string_view path) {
    const std::span<const EmbeddedFile> files = embedded_files();
    const auto found = std::ranges::lower_bound(files, path, {}, &EmbeddedFile::path);
    return found != files.end() && found->path == path ? found->content : std::string_view{};
}

}  // namespace ftax
