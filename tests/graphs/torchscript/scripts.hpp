#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ftax::test {

using Shape = std::vector<std::int64_t>;

/// An operator of LibTorch and the shapes of the tensors that it returns, those in lists as well.
struct ScriptOperator {
    std::string name;
    std::vector<Shape> outputs;
};

/// What LibTorch itself makes of a TorchScript source: saves it as a file, and runs it once for real.
struct RealRun {
    Shape shape;                             ///< shape of the output
    std::vector<ScriptOperator> dispatched;  ///< in the order in which they ran
};

/// Shape of an input and whether it holds integers.
struct ScriptInput {
    Shape shape;
    bool integers = false;
};

/// Compiles `source` (methods of a model with a convolution `weight` [8,3,3,3], a matrix `matrix` [8,8] and a list of
/// two further matrices `steps`), saves it to `path` and runs forward on zeros of the given shape.
[[nodiscard]] RealRun save_and_run(const std::string& source, const std::string& path, const Shape& input_shape);

/// The operators that LibTorch dispatches when it runs a file whose weights lie on the meta device, or nowhere.
[[nodiscard]] std::vector<ScriptOperator> run_file(const std::string& path, const std::vector<ScriptInput>& inputs);

/// The operators of the file's frozen graph whose shapes LibTorch's PropagateShapesOnGraph knows, in order.
[[nodiscard]] std::vector<ScriptOperator> propagate_shapes(const std::string& path,
                                                           const std::vector<ScriptInput>& inputs);

}  // namespace ftax::test
