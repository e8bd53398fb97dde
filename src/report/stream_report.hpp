#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ftax/graph.hpp"
#include "ftax/types.hpp"
#include "src/report/columns.hpp"

namespace ftax::report {

/// Effect of an operator's dispatch by eager PyTorch.
enum class Dispatch : std::uint8_t {
    kernel,  ///< launches one or more kernels
    view,    ///< reinterprets the same memory
    host,    ///< runs only on the host
    sync,    ///< the host waits for its result
};

[[nodiscard]] std::string_view name_of(Dispatch dispatch) noexcept;
[[nodiscard]] std::string typed_shape(const Tensor& tensor, const BoundShapes& bound);  ///< "f32[2,64,56,56]"

/// One operator in the order in which eager PyTorch dispatches them.
struct StreamRow {
    std::string source;  ///< "aten::conv2d"
    std::string module;
    std::string output;  ///< "f32[2,64,56,56]"
    Dispatch dispatch = Dispatch::kernel;
    std::int64_t flops = 0;
    std::int64_t bytes = 0;
};

/// Throws what bind() and work_of() throw.
[[nodiscard]] std::vector<StreamRow> op_stream(const Graph& graph, const ShapeBindings& bindings);

[[nodiscard]] const Columns<StreamRow>& stream_columns();

}  // namespace ftax::report
