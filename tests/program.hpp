#pragma once

#include <string>

/// Runs the built program for tests of whole commands.
struct ProgramRun {
    int exit_code = 0;
    std::string output;  ///< what it wrote to standard output
    std::string errors;  ///< and to standard error
};

/// `arguments` is shell text: quote what needs it; redirections and pipes work. A death by signal counts as 128 + it.
/// `before` is shell text that runs first in the same shell, e.g. "ulimit -d 100000".
[[nodiscard]] ProgramRun run_program(const std::string& arguments, const std::string& before = ":");
