#pragma once

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "ftax/memory.hpp"
#include "ftax/predict.hpp"

namespace ftax::scenario {

/// Where warnings and progress go: standard error, or nowhere after silence_notices() (--quiet).
[[nodiscard]] std::FILE* notices();
void silence_notices();

/// Prints warnings to standard error, each once and escaped.
void print_warnings(const std::vector<std::string>& warnings);

/// What print_warnings() has been given so far and `told` does not say, in order: a result whose rows carry their own
/// warnings carries these too, so that none is told on standard error alone.
[[nodiscard]] std::vector<std::string> warnings_besides(const std::set<std::string>& told);

/// Adds to the warnings of a run that it does not fit into the memory of its device, where it does not.
void warn_of_memory(Prediction& prediction, const MemoryUse& memory);

}  // namespace ftax::scenario
