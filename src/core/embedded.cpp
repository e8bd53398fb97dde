#include "src/core/embedded.hpp"

#include <algorithm>

namespace ftax {

namespace {

std::string_view content_at(std::span<const EmbeddedFile> files, std::string_view path) {
    const auto found = std::ranges::lower_bound(files, path, {}, &EmbeddedFile::path);
    return found != files.end() && found->path == path ? found->content : std::string_view{};
}

}  // namespace

std::string_view embedded_text(std::string_view path) {
    return content_at(embedded_files(), path);
}

std::string_view packed_document(std::string_view path) {
    return content_at(packed_files(), path);
}

}  // namespace ftax
