#pragma once

#include <string>

#include "ftax/import.hpp"
#include "graphs/pt2/archive.hpp"

namespace ftax {

/// Returns true if an archive was written by torch.jit.save: it contains code.
[[nodiscard]] bool is_torchscript(const Archive& archive);

/// Imports a TorchScript program (.pt of torch.jit.trace or torch.jit.script): checks the archive, lets LibTorch load
/// it and walks its forward method with the input shapes of `options`. The graph is the stream of ATen calls as eager
/// dispatches them, with module paths and views; weights are loaded but never computed on.
/// Throws Error{model} for a damaged archive, for files rejected by LibTorch, and in a build without LibTorch;
/// Error{usage} for an input without a shape; Error{limit} beyond the limits of `options`.
[[nodiscard]] Graph import_torchscript(const std::string& path, const ImportOptions& options);

}  // namespace ftax
