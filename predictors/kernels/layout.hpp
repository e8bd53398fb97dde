#pragma once

#include <algorithm>
#include <cstdint>

#include "ftax/graph.hpp"

/// Memory layouts of bound tensors.
namespace ftax {

/// Returns a dimension, counted from the back if negative. At least 1: empty tensors cost as much as the smallest
/// kernel, and the models never divide by zero.
[[nodiscard]] inline std::int64_t dim(const Tensor& tensor, const BoundShapes& bound, int index) {
    const int rank = static_cast<int>(tensor.shape.size());
    const int at = index < 0 ? index + rank : index;
    return at >= 0 && at < rank ? std::max<std::int64_t>(1, bound[tensor.shape[at]]) : 1;
}
[[nodiscard]] bool is_viewable(const Tensor& from, const Tensor& to, const BoundShapes& bound);
[[nodiscard]] bool is_contiguous(const Tensor& tensor, const BoundShapes& bound);
[[nodiscard]] bool is_channels_last(const Tensor& tensor, const BoundShapes& bound);
[[nodiscard]] bool leading_dims_merge(const Tensor& tensor, const BoundShapes& bound);
/// Returns how far apart in memory the neighbours of one tensor are in another of the same shape, in elements of the
/// latter; 1 if both have the same fastest dimension. The second one is taken as stored in rows if `by_rows`.
[[nodiscard]] std::int64_t stride_between(const Tensor& a, const Tensor& b, const BoundShapes& bound, bool by_rows);

}  // namespace ftax
