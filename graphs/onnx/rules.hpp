#pragma once

#include "graphs/onnx/node.hpp"

/// Rules that the rows of data/onnx_operators.tsv name. Each sets the outputs' types, the canonical attributes and,
/// where the row's kind is not always right, the kind. Source of all: the ONNX operator documentation (Operators.md,
/// Changelog.md up to opset 25) and onnxruntime's ContribOperators.md.
namespace ftax::onnx_import {

// In the order of the files rules_*.cpp; norms and reductions are in rules_norm.cpp, shapes, new tensors and signals in
// rules_fill.cpp, the rules that evaluate known elements in evaluate.cpp.
#define FTAX_ONNX_RULES                                                                                               \
    same_as_first, broadcast_all, where, cast, cast_like, dropout, alias_first, clip, conv, qlinear_conv,             \
        conv_transpose, matmul, qlinear_matmul, gemm, einsum, recurrent, nhwc_conv, fused_matmul, quantize,           \
        dequantize, dynamic_quantize, qlinear_same, matmul_nbits, pool, global_pool, max_unpool, roi_pool, resize,    \
        upsample, grid_sample, affine_grid, col2im, batch_norm, layer_norm, group_norm, channel_norm, lp_norm,        \
        softmax, reduce, arg_reduce, cumulative, top_k, unique, det, reshape, flatten, squeeze, unsqueeze, transpose, \
        slice, split, concat, expand, tile, pad, depth_to_space, center_crop_pad, gather, gather_elements, gather_nd, \
        scatter, one_hot, nonzero, compress, non_max_suppression, embed_layer_norm, constant, shape, size,            \
        constant_of_shape, range, random_shape, multinomial, window_function, mel_weight_matrix, like_first, dft,     \
        stft, sequence_construct, sequence_empty, sequence_insert, sequence_erase, sequence_at, sequence_length,      \
        split_to_sequence, concat_from_sequence, optional_pass, optional_has_element, attention, packed_attention,    \
        multi_head_attention, group_query_attention, rotary_embedding, skip_layer_norm, bias_function,                \
        bias_split_gelu, bias_softmax, evaluate_elementwise, evaluate_copy, evaluate_transpose, evaluate_slice,       \
        evaluate_concat, evaluate_expand, evaluate_tile, evaluate_gather, evaluate_reduce, evaluate_split,            \
        evaluate_cumulative, evaluate_nonzero, evaluate_range, evaluate_scatter_nd, evaluate_cast

using Rule = void(Node&);
Rule FTAX_ONNX_RULES;

// what rules of windows share (rules_window.cpp)

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
