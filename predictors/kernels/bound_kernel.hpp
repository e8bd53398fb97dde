#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "ftax/graph.hpp"
#include "predictors/kernels/kernel.hpp"
#include "predictors/kernels/layout.hpp"

namespace ftax {

/// A kernel of a schedule with the sizes of its operator's tensors.
struct BoundKernel {
    const Graph& graph;
    const std::vector<DType>& storage;  ///< element type of every tensor under the run's precision
    double weight_bytes;                ///< traffic between two uses of one weight
    const Kernel& lowered;
    const BoundShapes& bound;

    [[nodiscard]] const Op& op() const { return graph.ops[lowered.op]; }
    [[nodiscard]] const Tensor& input(std::size_t i) const { return graph.tensors[op().inputs[i]]; }
    [[nodiscard]] const Tensor& output() const { return graph.tensors[op().outputs[0]]; }
    [[nodiscard]] std::int64_t dim(const Tensor& tensor, int index) const { return ftax::dim(tensor, bound, index); }
    /// Returns the spatial dimensions d, h, w of an N,C,spatial… tensor, at least 1; leading ones are 1 in 1-D and 2-D.
    [[nodiscard]] std::array<std::int64_t, 3> spatial(const Tensor& tensor) const {
        const int rank = static_cast<int>(tensor.shape.size());
        const auto side = [&](int from_end) { return dim(tensor, rank - from_end < 2 ? rank : -from_end); };
        return {side(3), side(2), side(1)};
    }
    [[nodiscard]] std::int64_t elements(TensorId id) const { return element_count(graph.tensors[id], bound); }
    [[nodiscard]] int element_bytes(TensorId id) const { return std::max(1, bits_of(storage[id]) / 8); }
};

/// Fills in the dimensions of a kernel's shape, its prototype before. Throws Error{limit} if a count exceeds int64.
void bind_dimensions(kernels::GemmShape& shape, const BoundKernel& kernel);
void bind_dimensions(kernels::ConvShape& shape, const BoundKernel& kernel);
void bind_dimensions(kernels::MemoryShape& shape, const BoundKernel& kernel);
void bind_dimensions(kernels::AttentionShape& shape, const BoundKernel& kernel);
void bind_dimensions(kernels::QuantizeShape& shape, const BoundKernel& kernel);
void bind_dimensions(kernels::GroupedGemmShape& shape, const BoundKernel& kernel);
void bind_dimensions(kernels::RecurrentShape& shape, const BoundKernel& kernel);
/// Fused mixtures occur only in measurement files.
inline void bind_dimensions(kernels::MixtureShape&, const BoundKernel&) {}

}  // namespace ftax
