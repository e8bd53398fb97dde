#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/program.hpp"
#include "tests/temporary_folder.hpp"

namespace ftax::test {

/// A model of one layer whose batch and sequence length are open.
inline constexpr const char* tiny = R"(graph tiny
input %x f32[batch,seq,64]
weight %w f32[64,64]
%1 f32[batch,seq,64] = linear(%x, %w) "aten::linear" @fc
output %1
)";

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
