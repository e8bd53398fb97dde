#include "tests/program.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace {

std::string take(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::string content{std::istreambuf_iterator<char>(file), {}};
    file.close();
    std::filesystem::remove(path);
    return content;
}

}  // namespace

ProgramRun run_program(const std::string& arguments, const std::string& before) {
    const auto folder = std::filesystem::temp_directory_path();
    const auto output = folder / ("ftax-out-" + std::to_string(::getpid()));
    const auto errors = folder / ("ftax-err-" + std::to_string(::getpid()));
    const std::string command =
        "{ " + before + "; " FTAX_PROGRAM " " + arguments + "; } >" + output.string() + " 2>" + errors.string();
    const int status = std::system(command.c_str());
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return {code, take(output), take(errors)};
}
