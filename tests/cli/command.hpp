#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/program.hpp"
#include "tests/temporary_folder.hpp"

namespace ftax::test {

/// Runs the program with these arguments exactly as they are.
inline ProgramRun run_ftax(const std::vector<std::string>& arguments) {
    std::string text;
    for (const std::string& argument : arguments) {
        text += " '";
        for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
        text += "'";
    }
    return run_program(text);
}

inline std::string read_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace ftax::test
