#include "graphs/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ftax/error.hpp"

namespace ftax {
namespace {

/// Above this size most of a model is payload that is skipped, so that reading ahead would only fill memory.
constexpr std::size_t large_file_bytes = 16u << 20;

[[noreturn]] void fail(const std::string& path, std::string_view what) {
    throw Error(ErrorCode::model, fmt::format("{}: {}", path, what));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
    // O_NONBLOCK: opening a FIFO must not wait for a writer.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) fail(path, std::strerror(errno));
    struct stat status {};
    const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    if (regular && status.st_size > 0) {
        size_ = static_cast<std::size_t>(status.st_size);
        void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (mapping != MAP_FAILED) data_ = static_cast<const char*>(mapping);
    }
    const int map_error = errno;
    ::close(descriptor);
    if (!regular) fail(path, "not a regular file");
    if (size_ > 0 && !data_) fail(path, std::strerror(map_error));
    if (size_ > large_file_bytes) ::madvise(const_cast<char*>(data_), size_, MADV_RANDOM);
}

MappedFile::~MappedFile() {
    if (data_) ::munmap(const_cast<char*>(data_), size_);
}

void MappedFile::release() const noexcept {
    if (data_) ::madvise(const_cast<char*>(data_), size_, MADV_DONTNEED);
}

}  // namespace ftax
