#include "graphs/files/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "graphs/base/throw_error.hpp"
#include "graphs/files/escape.hpp"

namespace ftax {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(std::string_view action, const std::string& path, int reason) {
    throw_error(ErrorCode::usage, "cannot {} {}: {}", action, escape_terminal(path),
                std::generic_category().message(reason));
}

/// Returns 0, or errno.
int write_all(const Descriptor& file, std::string_view content) {
    while (!content.empty()) {
        const ssize_t written = ::write(file.number(), content.data(), content.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return errno;
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

fs::path& confinement() {
    static fs::path folder;
    return folder;
}

/// Throws Error{refused} for an open file outside of the folder, whichever links lead to it.
void check_confined(int descriptor, const std::string& path) {
    if (confinement().empty()) return;
    const fs::path real = fs::read_symlink(fmt::format("/proc/self/fd/{}", descriptor));
    const auto part = std::mismatch(confinement().begin(), confinement().end(), real.begin(), real.end());
    if (part.first != confinement().end())
        throw_error(ErrorCode::refused, "{} is outside of the folder --root", escape_terminal(path));
}

std::string temporary_name(const std::string& path) {
    static std::atomic<unsigned> counter{0};
    return fmt::format("{}.{}-{}.tmp", path, ::getpid(), counter++);
}

}  // namespace

Descriptor open_file(const std::string& path) {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const int reason = errno;
    struct stat status {};
    const bool known = (file.open() ? ::fstat(file.number(), &status) : ::stat(path.c_str(), &status)) == 0;
    if (known && !S_ISREG(status.st_mode))
        throw_error(ErrorCode::usage, "{} is a {}, not a file", escape_terminal(path),
                    S_ISDIR(status.st_mode)    ? "folder"
                    : S_ISFIFO(status.st_mode) ? "pipe"
                    : S_ISSOCK(status.st_mode) ? "socket"
                                               : "device");
    if (!file.open()) fail("open", path, reason);
    check_confined(file.number(), path);
    return file;
}

std::string read_file(const std::string& path, std::uint64_t max_bytes) {
    const Descriptor file = open_file(path);
    struct stat status {};
    if (::fstat(file.number(), &status) != 0) fail("read", path, errno);
    std::string content;
    constexpr std::size_t chunk_bytes = 1 << 16;
    const auto known_bytes = static_cast<std::size_t>(status.st_size);  // 0 of what the kernel writes, as in /proc
    if (known_bytes <= max_bytes) content.reserve(known_bytes + 1);     // the end is read without another allocation
    for (;;) {
        if (content.size() > max_bytes)
            throw_error(ErrorCode::limit, "{} is longer than {} bytes", escape_terminal(path), max_bytes);
        const std::size_t before = content.size();
        content.resize(before < content.capacity() ? content.capacity() : before + chunk_bytes);
        const ssize_t got = ::read(file.number(), content.data() + before, content.size() - before);
        content.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail("read", path, errno);
        if (got > 0) continue;
        if (content.starts_with("\xff\xfe") || content.starts_with("\xfe\xff"))
            throw_error(ErrorCode::usage, "{} is UTF-16; save it as UTF-8", escape_terminal(path));
        return content;
    }
}

void confine_files(const std::string& folder) {
    std::error_code problem;
    confinement() = fs::canonical(folder, problem);
    if (!problem) fs::current_path(confinement(), problem);
    if (problem) fail("enter", folder, problem.value());
}

void write_file(const std::string& path, std::string_view content) {
    std::error_code ignored;
    const fs::path target = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored) : fs::path(path);
    struct stat status {};
    const bool exists = ::stat(target.c_str(), &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) {
        Descriptor device(::open(target.c_str(), O_WRONLY | O_CLOEXEC));
        if (!device.open()) fail("write", path, errno);
        if (const int reason = write_all(device, content)) fail("write", path, reason);
        if (!device.close()) fail("write", path, errno);
        return;
    }
    const std::string temporary = temporary_name(target.string());
    Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file.open()) fail("write", path, errno);
    int reason = write_all(file, content);
    if (!reason && exists && ::fchmod(file.number(), status.st_mode & 07777) != 0) reason = errno;
    if (!reason && ::fsync(file.number()) != 0) reason = errno;
    if (!file.close() && !reason) reason = errno;
    if (!reason && ::rename(temporary.c_str(), target.c_str()) != 0) reason = errno;
    if (reason) {
        ::unlink(temporary.c_str());
        fail("write", path, reason);
    }
    const fs::path folder = target.parent_path();
    const Descriptor parent(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (parent.open()) ::fsync(parent.number());  // the file is complete; a folder that cannot be synced is no loss
}

bool is_writable_folder(const std::string& path) {
    return ::access(path.c_str(), W_OK | X_OK) == 0;
}

}  // namespace ftax
