#include "predictors/kernels/layout.hpp"

#include <array>

#include "graphs/base/checked_math.hpp"

namespace ftax {
namespace {

constexpr std::size_t max_view_rank = 32;

struct StridedShape {
    std::array<std::int64_t, max_view_rank> size{}, stride{};
    std::size_t rank = 0;
};

/// Copies those of the first `count` dimensions that are longer than 1, with their strides.
StridedShape without_ones(const Tensor& tensor, const BoundShapes& bound, std::size_t count) {
    StridedShape result;
    for (std::size_t i = 0; i < count && result.rank < max_view_rank; ++i) {
        if (bound[tensor.shape[i]] == 1) continue;
        result.size[result.rank] = bound[tensor.shape[i]];
        result.stride[result.rank++] = bound[tensor.strides[i]];
    }
    return result;
}

}  // namespace

// Source: aten/src/ATen/TensorUtils.cpp, computeStride_impl: a view exists when each group of old dimensions that a
// group of new dimensions covers is contiguous within itself.
bool is_viewable(const Tensor& from, const Tensor& to, const BoundShapes& bound) {
    if (from.strides.empty()) return true;
    const StridedShape old = without_ones(from, bound, from.shape.size());
    if (old.rank == 0) return true;
    auto new_dim = static_cast<std::ptrdiff_t>(to.shape.size()) - 1;
    std::int64_t chunk = 1;
    std::int64_t covered = 1;
    for (std::size_t i = old.rank; i-- > 0;) {
        chunk = checked_multiply(chunk, old.size[i]);
        const bool chunk_ends = i == 0 || old.stride[i - 1] != checked_multiply(old.size[i], old.stride[i]);
        if (!chunk_ends) continue;
        while (new_dim >= 0 && (covered < chunk || bound[to.shape[new_dim]] == 1))
            covered = checked_multiply(covered, bound[to.shape[new_dim--]]);
        if (covered != chunk) return false;
        chunk = covered = 1;
    }
    return true;
}

bool is_contiguous(const Tensor& tensor, const BoundShapes& bound) {
    if (tensor.strides.empty()) return true;
    const StridedShape dims = without_ones(tensor, bound, tensor.shape.size());
    std::int64_t expected = 1;
    for (std::size_t i = dims.rank; i-- > 0; expected = checked_multiply(expected, dims.size[i]))
        if (dims.stride[i] != expected) return false;
    return true;
}

bool is_channels_last(const Tensor& tensor, const BoundShapes& bound) {
    const std::size_t rank = tensor.shape.size();
    if (tensor.strides.empty() || (rank != 4 && rank != 5)) return false;
    const auto laid_out = [&](std::size_t i, std::int64_t stride) {
        return bound[tensor.shape[i]] == 1 || bound[tensor.strides[i]] == stride;
    };
    if (!laid_out(1, 1)) return false;
    std::int64_t step = bound[tensor.shape[1]];
    for (std::size_t i = rank; i-- > 2; step = checked_multiply(step, bound[tensor.shape[i]]))
        if (!laid_out(i, step)) return false;
    return true;
}

bool leading_dims_merge(const Tensor& tensor, const BoundShapes& bound) {
    if (tensor.strides.size() < 2) return true;
    const StridedShape dims = without_ones(tensor, bound, tensor.shape.size() - 2);
    for (std::size_t i = 0; i + 1 < dims.rank; ++i)
        if (dims.stride[i] != checked_multiply(dims.size[i + 1], dims.stride[i + 1])) return false;
    return true;
}

std::int64_t stride_between(const Tensor& a, const Tensor& b, const BoundShapes& bound, bool by_rows) {
    const bool in_rows = by_rows || b.strides.empty();
    if (a.shape.size() != b.shape.size() || (a.strides.empty() && in_rows)) return 1;
    std::int64_t step_a = 1, step_b = 1, stride = 1;
    for (std::size_t i = a.shape.size(); i-- > 0;) {
        const std::int64_t size = bound[a.shape[i]];
        if (size != bound[b.shape[i]]) return 1;
        const std::int64_t stride_a = a.strides.empty() ? step_a : bound[a.strides[i]];
        const std::int64_t stride_b = in_rows ? step_b : bound[b.strides[i]];
        step_a = checked_multiply(step_a, size), step_b = checked_multiply(step_b, size);
        // The fastest dimension determines the coalescing of warps.
        if (size > 1 && (stride_a == 1) != (stride_b == 1)) stride = std::max({stride, stride_a, stride_b});
    }
    return stride;
}

}  // namespace ftax
