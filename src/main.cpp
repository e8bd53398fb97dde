#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/error.hpp"
#include "graphs/files/escape.hpp"
#include "src/cli/verbs.hpp"
#include "src/scenario/scenario.hpp"

namespace {

constexpr int other_failure = 1;

int fail(int code, std::string_view message) {
    ftax::scenario::flush_warnings();
    std::fprintf(stderr, "ftax: %s\n", ftax::escape_terminal(message).c_str());
    return code;
}

/// What throws where nothing may, in a destructor, ends the program here; out of memory is as foreseen as elsewhere.
[[noreturn]] void end() {
    try {
        if (std::current_exception()) std::rethrow_exception(std::current_exception());
    } catch (const std::bad_alloc&) {
        std::fputs("ftax: not enough memory\n", stderr);
        std::_Exit(static_cast<int>(ftax::ErrorCode::limit));
    } catch (...) {
    }
    std::abort();
}

/// A reader that closed the pipe (`ftax … | head`) ends the program quietly, but not with success.
int flush_output(int code) {
    ftax::scenario::flush_warnings();
    if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
    return errno == EPIPE ? other_failure : fail(other_failure, "cannot write to standard output");
}

#ifdef FTAX_FIT_PROGRAM
/// Goes on as the program beside this one that also fits: loading its solvers takes as long as a prediction.
int become_fit_program(char** argv) {
    const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / FTAX_FIT_PROGRAM;
    ::execv(program.c_str(), argv);
    return fail(other_failure, program.string() + ": " + std::strerror(errno));
}
#endif

}  // namespace

int main(int argc, char** argv) {
    // A reader that went away and a file that grew too long are errors of a write, not the end of the process.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    std::set_terminate(end);
    try {
        const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
        CLI::App app("", "ftax");
        ftax::cli::Action action;
#ifdef FTAX_FIT_PROGRAM
        if (!ftax::cli::stands_alone(words)) return become_fit_program(argv);
#endif
        ftax::cli::setup_verbs(app, action, words);
        const bool is_help = !ftax::cli::parse(app, words);
        return flush_output(is_help ? 0 : action());
    } catch (const ftax::Error& error) {
        return fail(static_cast<int>(error.code()), error.what());
    } catch (const std::bad_alloc&) {
        return fail(static_cast<int>(ftax::ErrorCode::limit), "not enough memory");
    } catch (const std::exception& error) {
        return fail(other_failure, error.what());
    }
}
