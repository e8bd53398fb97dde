#include "graphs/onnx/external_data.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "ftax/error.hpp"

namespace ftax::onnx_import {
namespace {

/// Owns a file descriptor.
class Descriptor {
  public:
    explicit Descriptor(int value) : value_(value) {}
    ~Descriptor() {
        if (value_ >= 0) ::close(value_);
    }
    Descriptor(Descriptor&& other) noexcept : value_(other.value_) { other.value_ = -1; }
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(value_, other.value_);
        return *this;
    }
    [[nodiscard]] int get() const noexcept { return value_; }

  private:
    int value_;
};

[[noreturn]] void refuse(std::string_view location, std::string_view why) {
    throw Error(ErrorCode::refused, fmt::format("external data '{}': {}", location, why));
}

/// Opens a path component by component, so that no symbolic link leads out of the directory.
std::optional<Descriptor> open_below(const std::string& directory, std::string_view location) {
    if (location.starts_with('/')) refuse(location, "absolute path");
    if (location.find('\0') != std::string_view::npos) refuse(location, "NUL in the path");
    Descriptor at(::open(directory.empty() ? "." : directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    std::string_view rest = location;
    while (at.get() >= 0) {
        const std::size_t slash = rest.find('/');
        const std::string component(rest.substr(0, slash));
        if (component == "..") refuse(location, "leads out of the model's directory");
        const bool last = slash == std::string_view::npos;
        if (!component.empty() && component != ".") {
            // O_NONBLOCK: a FIFO must not block; O_NOFOLLOW: a symbolic link fails with ELOOP.
            const int flags = O_CLOEXEC | O_NOFOLLOW | (last ? O_RDONLY | O_NONBLOCK : O_PATH | O_DIRECTORY);
            Descriptor next(::openat(at.get(), component.c_str(), flags));
            if (next.get() < 0 && errno == ENOENT) return std::nullopt;
            if (next.get() < 0) refuse(location, errno == ELOOP || errno == ENOTDIR ? "symbolic link" : "cannot be opened");
            at = std::move(next);
        }
        if (last) return at;
        rest.remove_prefix(slash + 1);
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> read_external_data(const ExternalData& data, const std::string& directory, std::int64_t count) {
    const auto file = open_below(directory, data.location);
    if (!file) return std::nullopt;
    struct stat status {};
    if (::fstat(file->get(), &status) != 0 || !S_ISREG(status.st_mode)) refuse(data.location, "not a regular file");
    if (status.st_nlink != 1) refuse(data.location, "has more than one name (hard link)");
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const std::uint64_t length = data.length.value_or(static_cast<std::uint64_t>(count));
    if (data.offset > size || length > size - data.offset) {
        throw Error(ErrorCode::model, fmt::format("external data '{}': bytes {} to {} lie beyond its end at {}", data.location,
                                                  data.offset, data.offset + length, size));
    }
    if (length != static_cast<std::uint64_t>(count)) {
        throw Error(ErrorCode::model, fmt::format("external data '{}': {} bytes announced where the tensor has {}",
                                                  data.location, length, count));
    }
    std::string bytes(static_cast<std::size_t>(count), '\0');
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t got = ::pread(file->get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(data.offset + done));
        if (got <= 0) throw Error(ErrorCode::model, fmt::format("external data '{}': cannot be read", data.location));
        done += static_cast<std::size_t>(got);
    }
    return bytes;
}

}  // namespace ftax::onnx_import
