#pragma once

#include <string>

#include "ftax/import.hpp"

namespace ftax {

/// Imports a torch.export archive (.pt2 of torch 2.4 to 2.11) without LibTorch; weights are never read.
/// The ATen calls keep their order, their module path and their source names, so that eager frameworks see what PyTorch
/// would dispatch. Symbols that torch numbered (s77) are called `batch` and `seq` where the inputs say which they are.
/// Throws Error{model} for a file that is no such archive, was compiled by AOTInductor, or has a newer schema;
/// Error{limit} beyond the limits of `options`; Error{usage} for an input shape that does not fit the file.
[[nodiscard]] Graph import_pt2(const std::string& path, const ImportOptions& options);

}  // namespace ftax
