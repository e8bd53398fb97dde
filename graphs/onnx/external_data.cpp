#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "graphs/base/descriptor.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/onnx/records.hpp"

namespace ftax::onnx_import {
namespace {

[[noreturn]] void refuse(std::string_view location, std::string_view why) {
    throw_error(ErrorCode::refused, "external data '{}': {}", excerpt(location), why);
}

std::vector<std::string> components_of(std::string_view location) {
    if (location.starts_with('/')) refuse(location, "absolute path");
    if (location.find('\0') != std::string_view::npos) refuse(location, "NUL in the path");
    std::vector<std::string> components;
    for (const std::string_view component : words_of(location, '/')) {
        if (component == "..") refuse(location, "leads out of the model's directory");
        if (!component.empty() && component != ".") components.emplace_back(component);
    }
    if (components.empty()) refuse(location, "not a regular file");
    return components;
}

/// Opens a path component by component, so that no symbolic link leads out of the directory; nothing but a regular file
/// is opened. Returns nullopt when the path does not exist.
std::optional<Descriptor> open_below(const std::string& directory, std::string_view location) {
    const std::vector<std::string> components = components_of(location);
    Descriptor at(::open(directory.empty() ? "." : directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (std::size_t i = 0; i < components.size(); ++i) {
        const bool last = i + 1 == components.size();
        struct stat status {};
        if (::fstatat(at.number(), components[i].c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
            if (errno == ENOENT) return std::nullopt;
            refuse(location, "cannot be reached");
        }
        if (S_ISLNK(status.st_mode)) refuse(location, "symbolic link");
        if (last ? !S_ISREG(status.st_mode) : !S_ISDIR(status.st_mode)) refuse(location, "not a regular file");
        // Another file may have taken the place since the look: O_NOFOLLOW and O_NONBLOCK keep that harmless.
        const int flags = O_CLOEXEC | O_NOFOLLOW | (last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY);
        Descriptor next(::openat(at.number(), components[i].c_str(), flags));
        if (!next.open()) refuse(location, "cannot be opened");
        at = std::move(next);
    }
    return at;
}

}  // namespace

std::optional<std::string> read_external_data(const ExternalData& data, const std::string& directory,
                                              std::int64_t count) {
    const auto file = open_below(directory, data.location);
    if (!file) return std::nullopt;
    struct stat status {};
    if (::fstat(file->number(), &status) != 0 || !S_ISREG(status.st_mode)) refuse(data.location, "not a regular file");
    if (status.st_nlink != 1) refuse(data.location, "has more than one name (hard link)");
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const std::uint64_t length = data.length.value_or(static_cast<std::uint64_t>(count));
    if (data.offset > size || length > size - data.offset)
        throw_error(ErrorCode::model, "external data '{}': bytes {} to {} lie beyond its end at {}",
                    excerpt(data.location), data.offset, data.offset + length, size);
    if (length != static_cast<std::uint64_t>(count))
        throw_error(ErrorCode::model, "external data '{}': {} bytes announced where the tensor has {}",
                    excerpt(data.location), length, count);
    std::string bytes(static_cast<std::size_t>(count), '\0');
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t got =
            ::pread(file->number(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(data.offset + done));
        if (got <= 0) throw_error(ErrorCode::model, "external data '{}': cannot be read", excerpt(data.location));
        done += static_cast<std::size_t>(got);
    }
    return bytes;
}

}  // namespace ftax::onnx_import
