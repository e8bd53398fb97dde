#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>

#include "ftax/error.hpp"
#include "src/cli/verbs.hpp"
#include "src/io/escape.hpp"

namespace {

constexpr int other_failure = 1;

int fail(int code, std::string_view message) {
    std::fprintf(stderr, "ftax: %s\n", ftax::escape_terminal(message).c_str());
    return code;
}

/// A reader that closed the pipe (`ftax … | head`) ends the program quietly, but not with success.
int flush_output(int code) {
    if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
    return errno == EPIPE ? other_failure : fail(other_failure, "cannot write to standard output");
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    CLI::App app;
    ftax::cli::Action action;
    try {
        ftax::cli::setup_verbs(app, action);
        app.parse(argc, argv);
        return flush_output(action());
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return flush_output(app.exit(error));  // --help, --version
        return fail(static_cast<int>(ftax::ErrorCode::usage), error.what());
    } catch (const ftax::Error& error) {
        return fail(static_cast<int>(error.code()), error.what());
    } catch (const std::bad_alloc&) {
        return fail(static_cast<int>(ftax::ErrorCode::limit), "not enough memory");
    } catch (const std::exception& error) {
        return fail(other_failure, error.what());
    }
}
