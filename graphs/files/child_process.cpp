#include "graphs/files/child_process.hpp"

#include "graphs/base/throw_error.hpp"

#ifdef __wasm__  // has no processes
namespace ftax {
ChildResult run_in_child(const ChildLimits&, const std::function<std::string()>& work) {
    return {.output = work()};
}
}  // namespace ftax
#else

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "graphs/base/descriptor.hpp"

namespace ftax {
namespace {

[[noreturn]] void work_as_child(const ChildLimits& limits, std::uint64_t mapped_bytes, int pipe,
                                const std::function<std::string()>& work) {
    const ::rlimit memory{mapped_bytes + limits.bytes, mapped_bytes + limits.bytes}, no_core{0, 0};
    ::setrlimit(RLIMIT_AS, &memory);
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGALRM, SIG_DFL);
    ::alarm(limits.seconds);
    try {
        const std::string output = work();
        for (std::string_view left = output; !left.empty();) {
            const ssize_t written = ::write(pipe, left.data(), left.size());
            if (written < 0 && errno != EINTR) ::_exit(1);
            left.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
        }
        ::_exit(0);
    } catch (...) {  // nothing of this process may go on as the other
        ::_exit(1);
    }
}

}  // namespace

ChildResult run_in_child(const ChildLimits& limits, const std::function<std::string()>& work) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0)
        throw_error(ErrorCode::limit, "cannot create a pipe: {}", std::strerror(errno));
    const Descriptor reading(ends[0]);
    Descriptor writing(ends[1]);
    std::uint64_t mapped_pages = 0;
    std::ifstream("/proc/self/statm") >> mapped_pages;
    const ::pid_t child = ::fork();
    if (child < 0) throw_error(ErrorCode::limit, "cannot start a process: {}", std::strerror(errno));
    if (child == 0)
        work_as_child(limits, mapped_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)), writing.number(),
                      work);
    writing.close();
    ChildResult result;
    std::array<char, 1 << 16> block;
    for (ssize_t got = 1; got != 0;) {
        got = ::read(reading.number(), block.data(), block.size());
        if (got < 0 && errno != EINTR) break;
        result.output.append(block.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGALRM) result.signal = ::strsignal(WTERMSIG(status));
    result.beyond = status != 0 && result.signal.empty();
    return result;
}

}  // namespace ftax
#endif
