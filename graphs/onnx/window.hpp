#pragma once

#include "graphs/onnx/node.hpp"

namespace ftax::onnx_import {

/// Upper limit of strides, pads and groups; their sums stay within int64.
inline constexpr std::int64_t largest_window = std::int64_t{1} << 31;

/// Kernel, strides, pads and dilations of a convolution or pooling, checked.
struct WindowShape {
    Dims kernel;
    std::vector<std::int64_t> stride, dilation, pad_begin, pad_end;
    bool same_upper = false, same_lower = false;

    /// Output size along spatial axis `i` of an input of size `in`.
    [[nodiscard]] Expression output(const Node& n, Expression in, std::size_t i, bool ceil_mode) const;
    [[nodiscard]] WindowAxis axis(const Node& n, std::size_t i) const;
    /// Stores them as canonical attributes of the operator on `input`, [N, C, spatial…].
    void write(Node& n, const Dims& input) const;
};

/// Reads the window attributes. `weight_kernel` are the kernel dims of the weight, empty for a pooling, which must
/// have the attribute kernel_shape. Throws Error{model} on zeros, negatives, wrong lengths and excessive values.
[[nodiscard]] WindowShape read_window(const Node& n, const Dims& weight_kernel);

}  // namespace ftax::onnx_import
