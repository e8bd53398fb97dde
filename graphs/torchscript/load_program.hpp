#pragma once

#include <string>

#include "graphs/torchscript/program.hpp"

namespace ftax::script {

/// Loads a TorchScript archive with LibTorch and translates the functions that its forward method can reach. LibTorch
/// treats such a file as a program: load only trusted files. The program is not run.
/// Throws Error{model} with LibTorch's message if it rejects the file, and in a build without LibTorch.
[[nodiscard]] Program load_program(const std::string& path);

}  // namespace ftax::script
