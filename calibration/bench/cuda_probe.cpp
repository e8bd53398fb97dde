#include "calibration/bench/cuda_probe.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "ftax/error.hpp"

namespace ftax::bench {

std::string find_cuda_probe() {
    std::error_code ignored;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "ftax_cuda_probe";
    return std::filesystem::exists(program, ignored) ? program.string() : std::string();
}

std::string run_cuda_probe(const std::string& program) {
    std::string command = "'";
    for (const char c : program) command += c == '\'' ? std::string("'\\''") : std::string(1, c);
    std::FILE* output = ::popen((command + "'").c_str(), "r");
    if (!output) throw Error(ErrorCode::refused, fmt::format("cannot run {}", program));
    std::string text;
    std::array<char, 4096> buffer;
    for (std::size_t count; (count = std::fread(buffer.data(), 1, buffer.size(), output)) > 0;)
        text.append(buffer.data(), count);
    const int status = ::pclose(output);
    if (status == 0) return text;
    throw Error(ErrorCode::refused, WIFEXITED(status)
                                        ? fmt::format("{} ended with status {}", program, WEXITSTATUS(status))
                                        : fmt::format("{} was ended by signal {}", program, WTERMSIG(status)));
}

}  // namespace ftax::bench
