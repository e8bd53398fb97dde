#pragma once

#include "graphs/onnx/node.hpp"

/// Rules that the rows of op_table.cpp name. Each sets the outputs' types, the canonical attributes and, where the
/// table's kind is not always right, the kind. Source of all: the ONNX operator documentation (Operators.md,
/// Changelog.md up to opset 25) and onnxruntime's ContribOperators.md.
namespace ftax::onnx_import {

// elementwise (rules_elementwise.cpp)
void same_as_first(Node& n);  ///< output 0 has the type and shape of input 0
void same_boolean(Node& n);   ///< … as booleans
void broadcast_all(Node& n);
void broadcast_boolean(Node& n);
void where(Node& n);
void cast(Node& n);
void cast_like(Node& n);
void dropout(Node& n);
void alias_first(Node& n);  ///< output 0 is input 0
void clip(Node& n);

// contractions (rules_contraction.cpp)
void conv(Node& n);
void conv_integer(Node& n);
void qlinear_conv(Node& n);
void conv_transpose(Node& n);
void deform_conv(Node& n);
void matmul(Node& n);
void matmul_integer(Node& n);
void qlinear_matmul(Node& n);
void gemm(Node& n);
void einsum(Node& n);
void recurrent(Node& n);

// windows (rules_window.cpp)
void pool(Node& n);
void global_pool(Node& n);
void max_unpool(Node& n);
void roi_pool(Node& n);
void resize(Node& n);
void upsample(Node& n);
void grid_sample(Node& n);
void affine_grid(Node& n);
void col2im(Node& n);

// normalisation and softmax (rules_norm.cpp)
void batch_norm(Node& n);
void layer_norm(Node& n);
void group_norm(Node& n);
void channel_norm(Node& n);  ///< instance norm, LRN: same shape
void lp_norm(Node& n);
void softmax(Node& n);

// reductions and order (rules_reduce.cpp)
void reduce(Node& n);
void arg_reduce(Node& n);
void cumulative(Node& n);
void top_k(Node& n);
void unique(Node& n);
void det(Node& n);

// movement (rules_movement.cpp)
void reshape(Node& n);
void flatten(Node& n);
void squeeze(Node& n);
void unsqueeze(Node& n);
void transpose(Node& n);
void slice(Node& n);
void split(Node& n);
void concat(Node& n);
void expand(Node& n);
void tile(Node& n);
void pad(Node& n);
void depth_to_space(Node& n);
void space_to_depth(Node& n);
void center_crop_pad(Node& n);

// lookups and data-dependent sizes (rules_index.cpp)
void gather(Node& n);
void gather_elements(Node& n);
void gather_nd(Node& n);
void scatter(Node& n);
void one_hot(Node& n);
void nonzero(Node& n);
void compress(Node& n);
void non_max_suppression(Node& n);
void embed_layer_norm(Node& n);

// shapes and new tensors (rules_fill.cpp)
void constant(Node& n);
void shape(Node& n);
void size(Node& n);
void constant_of_shape(Node& n);
void range(Node& n);
void random_shape(Node& n);
void random_like(Node& n);
void bernoulli(Node& n);
void eye_like(Node& n);
void multinomial(Node& n);
void window_function(Node& n);
void mel_weight_matrix(Node& n);

// signal (rules_signal.cpp)
void dft(Node& n);
void stft(Node& n);

// quantisation (rules_quantize.cpp)
void quantize(Node& n);
void dequantize(Node& n);
void dynamic_quantize(Node& n);
void qlinear_same(Node& n);
void matmul_nbits(Node& n);

// sequences and optionals (rules_sequence.cpp)
void sequence_construct(Node& n);
void sequence_empty(Node& n);
void sequence_insert(Node& n);
void sequence_erase(Node& n);
void sequence_at(Node& n);
void sequence_length(Node& n);
void split_to_sequence(Node& n);
void concat_from_sequence(Node& n);
void optional_pass(Node& n);  ///< an optional counts as what it holds
void optional_has_element(Node& n);

// transformer operators (rules_transformer.cpp)
void attention(Node& n);         ///< ai.onnx::Attention
void packed_attention(Node& n);  ///< com.microsoft::Attention
void multi_head_attention(Node& n);
void group_query_attention(Node& n);
void rotary_embedding(Node& n);
void skip_layer_norm(Node& n);
void fused_matmul(Node& n);
void fused_conv(Node& n);
void nhwc_conv(Node& n);      ///< [N, spatial…, C]
void bias_function(Node& n);  ///< BiasGelu, BiasAdd, …: broadcast, one pass
void bias_split_gelu(Node& n);
void bias_softmax(Node& n);

// evaluation of known elements (evaluate.cpp)
void evaluate_elementwise(Node& n);
void evaluate_copy(Node& n);  ///< same elements in the same order
void evaluate_transpose(Node& n);
void evaluate_slice(Node& n);
void evaluate_concat(Node& n);
void evaluate_expand(Node& n);
void evaluate_tile(Node& n);
void evaluate_gather(Node& n);
void evaluate_reduce(Node& n);
void evaluate_split(Node& n);
void evaluate_cumulative(Node& n);
void evaluate_nonzero(Node& n);
void evaluate_range(Node& n);
void evaluate_scatter_nd(Node& n);
void evaluate_cast(Node& n);

}  // namespace ftax::onnx_import
