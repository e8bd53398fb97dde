#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ftax::test {

/// What LibTorch itself makes of a TorchScript source: saves it as a file, and runs it once for real.
struct RealRun {
    std::vector<std::int64_t> shape;      ///< of the output
    std::vector<std::string> dispatched;  ///< operators, in the order in which they ran
};

/// Compiles `source` (methods of a model with a convolution `weight` [8,3,3,3], a matrix `matrix` [8,8] and a list of
/// two further matrices `steps`), saves it to `path` and runs forward on zeros of the given shape.
[[nodiscard]] RealRun save_and_run(const std::string& source, const std::string& path,
                                   const std::vector<std::int64_t>& input_shape);

}  // namespace ftax::test
