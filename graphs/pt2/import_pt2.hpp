#pragma once

#include <string>

#include "ftax/import.hpp"

namespace ftax {

/// Imports a torch.export archive (.pt2 of torch 2.4 to 2.11) without LibTorch; weights are never read.
/// The ATen calls keep their order, their module path and their source names, so that eager frameworks match PyTorch's
/// dispatch. Symbols numbered by torch (s77) are renamed `batch` and `seq` if the inputs identify them. Throws
/// Error{model} for a file that is not such an archive, was compiled by AOTInductor, or has a newer schema;
/// Error{limit} beyond the limits of `options`; Error{usage} for an input shape that does not fit the file.
[[nodiscard]] Graph import_pt2(const std::string& path, const ImportOptions& options);

}  // namespace ftax
