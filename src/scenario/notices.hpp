#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "ftax/memory.hpp"

namespace ftax::scenario {

/// Where warnings and progress go: standard error, or nowhere after silence_notices() (--quiet).
[[nodiscard]] std::FILE* notices();
void silence_notices();

/// Prints warnings to standard error, each once and escaped.
void print_warnings(const std::vector<std::string>& warnings);

/// Warns of a run that does not fit into the memory of its device.
void warn_of_memory(const MemoryUse& memory);

}  // namespace ftax::scenario
