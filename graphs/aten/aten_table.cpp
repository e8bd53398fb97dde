#include "graphs/aten/aten_table.hpp"

#include "src/core/operator_rows.hpp"

namespace ftax {
namespace aten_shapes {
namespace {

using namespace aten_attributes;

constexpr Rule unknown = nullptr;
constexpr std::string_view norm_operands = "input weight bias running_mean running_var";
constexpr std::string_view product_with_sum = "mat1 mat2 self";
constexpr std::string_view batched_product_with_sum = "batch1 batch2 self";

// In the order of OpKind.
const AtenRow grouped_rows[] = {
    // clang-format off
    {"conv1d conv2d conv3d", OpKind::conv, conv, read_conv, "input weight bias"},
    {"convolution _convolution", OpKind::conv, unknown, read_conv, "input weight bias"},
    {"deform_conv2d", OpKind::conv, unknown, no_attributes, "input weight bias offset mask"},
    {"conv_transpose1d conv_transpose2d conv_transpose3d",
     OpKind::conv_transpose, conv_transpose, read_conv, "input weight bias"},
    {"linear", OpKind::linear, linear, no_attributes, "input weight bias"},
    {"matmul mm mv dot bmm", OpKind::matmul, matmul},
    {"_int_mm int_matmul", OpKind::matmul, integer_matmul},
    {"int_scaled_matmul", OpKind::matmul, unknown, no_attributes, "a b"},
    {"_scaled_mm _scaled_mm_v2", OpKind::matmul, unknown, no_attributes, "self mat2 bias"},
    {"_scaled_grouped_mm _scaled_grouped_mm_v2", OpKind::matmul, unknown, read_experts, "self mat2"},
    {"_weight_int8pack_mm", OpKind::linear, unknown, no_attributes, "self mat2"},
    {"addmm", OpKind::matmul, matmul_added, no_attributes, product_with_sum},
    {"baddbmm", OpKind::matmul, matmul_added, no_attributes, batched_product_with_sum},
    {"_grouped_mm", OpKind::matmul, grouped_matmul, read_experts, "self mat2"},
    {"grouped_mm_fallback", OpKind::matmul, unknown, read_experts, "input weight"},
    {"scaled_dot_product_attention", OpKind::attention, attention, read_causal, "query key value attn_mask"},
    {"_scaled_dot_product_flash_attention_for_cpu",
     OpKind::attention, unknown, read_causal, "query key value attn_mask"},
    {"_scaled_dot_product_flash_attention", OpKind::attention, unknown, read_causal, "query key value"},
    {"_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention",
     OpKind::attention, unknown, read_causal, "query key value attn_bias"},
    {"lstm gru rnn_tanh rnn_relu", OpKind::recurrent, recurrent, read_recurrent},
    {"lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell", OpKind::recurrent, recurrent_cell, read_recurrent},
    {"batch_norm", OpKind::batch_norm, same, read_training, norm_operands},
    {"native_batch_norm", OpKind::batch_norm, normalized, read_training, norm_operands},
    {"cudnn_batch_norm", OpKind::batch_norm, unknown, read_training, norm_operands},
    {"_native_batch_norm_legit_no_training", OpKind::batch_norm, unknown, no_attributes, norm_operands},
    {"instance_norm", OpKind::instance_norm, same, no_attributes, norm_operands},
    {"layer_norm", OpKind::layer_norm, same, read_normalized, "input weight bias"},
    {"native_layer_norm", OpKind::layer_norm, normalized, read_normalized, "input weight bias"},
    {"rms_norm", OpKind::rms_norm, same, read_normalized, "input weight"},
    {"_fused_rms_norm", OpKind::rms_norm, unknown, read_normalized, "input weight"},
    {"group_norm", OpKind::group_norm, same, read_groups, "input weight bias"},
    {"native_group_norm", OpKind::group_norm, normalized, read_groups, "input weight bias"},
    {"softmax", OpKind::softmax, same_cast, read_dim},
    {"_softmax _safe_softmax", OpKind::softmax, unknown, read_dim},
    {"log_softmax", OpKind::log_softmax, same_cast, read_dim},
    {"_log_softmax", OpKind::log_softmax, unknown, read_dim},
    {"abs bitwise_not ceil celu elu floor frac gelu hardshrink hardsigmoid hardswish leaky_relu log_sigmoid "
     "mish nan_to_num neg prelu relu relu6 round rrelu selu sign silu softplus softshrink square threshold tril triu "
     "trunc hardtanh=clamp", OpKind::pointwise, same},
    {"acos asin atan cos cosh erf erfinv exp expm1 log log10 log1p log2 logit reciprocal rsqrt sigmoid sin sinc sinh "
     "sqrt tan tanh", OpKind::pointwise, same_float},
    {"add addcdiv addcmul bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor clamp "
     "floor_divide heaviside lerp logaddexp mul pow sub clamp_max=clamp clamp_min=clamp "
     "clip=clamp rsub=sub subtract=sub fmod=mod remainder=mod __and__=and __or__=or __xor__=xor masked_fill=where "
     "maximum=max minimum=min multiply=mul __lshift__=bitwise_left_shift __rshift__=bitwise_right_shift",
     OpKind::pointwise, pointwise},
    {"angle complex _prelu_kernel=prelu special_expm1=expm1", OpKind::pointwise},
    {"atan2 copysign div ldexp xlogy divide=div true_divide=div", OpKind::pointwise, division},
    {"greater eq=equal ge=greater_or_equal gt=greater le=less_or_equal logical_and=and logical_or=or logical_xor=xor "
     "lt=less ne=not_equal", OpKind::pointwise, comparison},
    {"isfinite isinf isnan logical_not=not", OpKind::pointwise, same_boolean},
    {"polar", OpKind::pointwise, polar},
    {"where", OpKind::pointwise, where},
    {"glu", OpKind::pointwise, edited<halved>},
    {"diff=sub", OpKind::pointwise, differences},
    {"outer=mul", OpKind::pointwise, outer},
    {"to _to_copy", OpKind::cast, convert},
    {"type_as", OpKind::cast, convert_like},
    {"convert_element_type", OpKind::cast},
    {"all any", OpKind::reduce, any_reduce, read_reduce},
    {"argmax argmin", OpKind::reduce, arg_reduce, read_reduce},
    {"logsumexp", OpKind::reduce, reduce, read_reduce, {}, append_logsumexp},
    {"max median min", OpKind::reduce, extremum, read_reduce},
    {"mean norm prod std sum var amax=max amin=min frobenius_norm=norm linalg_vector_norm=norm",
     OpKind::reduce, reduce, read_reduce},
    {"std_mean var_mean", OpKind::reduce, moments, read_reduce},
    {"bincount _weight_norm_interface=weight_norm", OpKind::reduce},
    {"choose_qparams choose_qparams_affine choose_qparams_affine_dont_preserve_zero choose_qparams_affine_tinygemm "
     "choose_qparams_affine_with_min_max choose_qparams_per_token choose_qparams_per_token_asymmetric "
     "choose_qparams_symmetric choose_scale_float8", OpKind::reduce},
    {"cosine_similarity", OpKind::reduce, reduce, no_attributes, {}, append_cosine_similarity},
    {"histc", OpKind::reduce, histogram},
    {"_weight_norm=weight_norm", OpKind::reduce, same},
    {"cumprod cumsum", OpKind::cumulative, same_cast, read_dim},
    {"logcumsumexp", OpKind::cumulative, same, read_dim},
    {"argsort=sort", OpKind::sort, arg_reduce, read_dim},
    {"searchsorted bucketize", OpKind::sort},
    {"sort", OpKind::sort, sort, read_dim},
    {"topk", OpKind::sort, topk, read_dim},
    {"avg_pool1d=average avg_pool2d=average avg_pool3d=average max_pool1d=max max_pool2d=max max_pool3d=max",
     OpKind::pool, pool, read_pool},
    {"max_pool1d_with_indices=max max_pool2d_with_indices=max max_pool3d_with_indices=max",
     OpKind::pool, pool_with_indices, read_pool},
    {"adaptive_avg_pool1d=average adaptive_avg_pool2d=average adaptive_avg_pool3d=average adaptive_max_pool1d=max "
     "adaptive_max_pool2d=max adaptive_max_pool3d=max", OpKind::global_pool, adaptive_pool},
    {"_adaptive_avg_pool2d=average _adaptive_avg_pool3d=average", OpKind::global_pool},
    {"upsample_nearest1d=nearest upsample_nearest2d=nearest upsample_nearest3d=nearest "
     "_upsample_nearest_exact2d=nearest upsample_linear1d=linear upsample_bilinear2d=bilinear "
     "_upsample_bilinear2d_aa=bilinear upsample_trilinear3d=trilinear upsample_bicubic2d=bicubic "
     "_upsample_bicubic2d_aa=bicubic", OpKind::resize, resize},
    {"grid_sampler=grid_sample", OpKind::resize, grid_sample},
    {"grid_sampler_2d=grid_sample", OpKind::resize},
    {"embedding", OpKind::embedding, embedding, no_attributes, "weight indices"},
    {"embedding_bag", OpKind::embedding, unknown, no_attributes, "weight indices"},
    {"gather take_along_dim", OpKind::gather, gather},
    {"index _unsafe_index", OpKind::gather, index},
    {"index_select", OpKind::gather, edited<index_select>},
    {"take masked_select roi_align", OpKind::gather},
    {"index_add index_copy index_fill index_put masked_scatter scatter scatter_add scatter_reduce select_scatter "
     "slice_scatter", OpKind::scatter, same},
    {"_index_put_impl _unsafe_index_put", OpKind::scatter},
    {"_reshape_alias ravel _conj", OpKind::reshape},
    {"_unsafe_view reshape view", OpKind::reshape, view},
    {"flatten", OpKind::reshape, flatten},
    {"imag real view_as_real", OpKind::reshape, real_view},
    {"reshape_as view_as", OpKind::reshape, view_like},
    {"unflatten", OpKind::reshape, edited<unflatten>},
    {"view_as_complex", OpKind::reshape, complex_view},
    {"conj", OpKind::reshape, same},
    {"squeeze", OpKind::reshape, edited<squeeze>, read_squeezed},
    {"unsqueeze", OpKind::reshape, edited<unsqueeze>, read_new_dim},
    {"adjoint mT t", OpKind::transpose, edited<matrix_transpose>, read_matrix_transpose},
    {"movedim moveaxis", OpKind::transpose, movedim},
    {"numpy_T", OpKind::transpose, edited<permute>},
    {"permute", OpKind::transpose, edited<permute>, read_permute},
    {"swapaxes swapdims transpose", OpKind::transpose, edited<transpose>, read_transpose},
    {"as_strided", OpKind::slice},
    {"diagonal", OpKind::slice, diagonal},
    {"unfold", OpKind::slice, edited<unfold>},
    {"narrow", OpKind::slice, edited<narrow>, read_slice},
    {"slice", OpKind::slice, edited<slice>, read_slice},
    {"select", OpKind::slice, edited<select>, read_select},
    {"chunk unsafe_chunk", OpKind::split, chunk, read_first_dim},
    {"split split_with_sizes unsafe_split", OpKind::split, split, read_first_dim},
    {"tensor_split", OpKind::split, tensor_split, read_first_dim},
    {"unbind", OpKind::split, unbind, read_first_dim},
    {"hsplit", OpKind::split},
    {"broadcast_tensors", OpKind::expand, broadcast_tensors},
    {"broadcast_to expand", OpKind::expand, edited<expand>},
    {"expand_as", OpKind::expand, view_like},
    {"meshgrid", OpKind::expand, meshgrid},
    {"cat concat concatenate", OpKind::concat, concat, read_joined_dim},
    {"hstack vstack", OpKind::concat},
    {"stack", OpKind::concat, stack, read_new_dim},
    {"constant_pad_nd pad reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d replication_pad3d",
     OpKind::pad, edited<pad>},
    {"channel_shuffle clone contiguous copy flip rot90", OpKind::copy, same},
    {"col2im diag_embed lift_fresh_copy", OpKind::copy},
    {"im2col", OpKind::copy, unfold_windows},
    {"one_hot", OpKind::copy, one_hot},
    {"pixel_shuffle pixel_unshuffle", OpKind::copy, edited<pixel_shuffle>},
    {"repeat tile", OpKind::copy, edited<repeat>},
    {"repeat_interleave", OpKind::copy, repeat_interleave},
    {"roll", OpKind::copy, same, read_roll},
    {"resolve_conj resolve_neg alias alpha_dropout detach dropout feature_dropout lift_fresh requires_grad",
     OpKind::identity, same},
    {"native_dropout", OpKind::identity},
    {"access_subclass_inner_tensor", OpKind::identity, unknown, no_attributes, {}, append_inner_tensor},
    {"arange linspace", OpKind::fill, arange},
    {"bernoulli fill normal uniform zero", OpKind::fill, same},
    {"eye", OpKind::fill, eye},
    {"full ones rand randint randn zeros", OpKind::fill, fill_float},
    {"full_like ones_like rand_like randn_like zeros_like", OpKind::fill, same_cast},
    {"new_full new_ones new_zeros", OpKind::fill, fill},
    {"scalar_tensor tril_indices triu_indices hann_window", OpKind::fill},
    {"fft_fft fft_fft2 fft_fftn fft_ifft fft_ifft2 fft_ifftn fft_irfft fft_irfft2 fft_rfft fft_rfft2 fft_rfftn",
     OpKind::fft, fft, read_fft},
    {"_fft_c2c _fft_c2r _fft_r2c", OpKind::fft, unknown, read_fft},
    {"stft", OpKind::fft, unknown, read_stft},
    {"fake_quantize_per_channel_affine fake_quantize_per_tensor_affine", OpKind::quantize, same},
    {"quantize_affine quantize_affine_float8 quantize_affine_float8_non_decomposed quantize_affine_no_zero_point "
     "quantize_affine_tinygemm quantize_per_channel quantize_per_channel_group quantize_per_tensor quantize_per_token",
     OpKind::quantize},
    {"dequantize dequantize_affine dequantize_affine_float8 dequantize_affine_float8_non_decomposed "
     "dequantize_affine_no_zero_point dequantize_affine_tinygemm dequantize_per_channel dequantize_per_channel_group "
     "dequantize_per_tensor dequantize_per_token", OpKind::dequantize},
    {"nonzero nonzero_numpy unique_consecutive unique_dim _unique2 nms", OpKind::nonzero},
    {"_local_scalar_dense equal item", OpKind::to_host},
    {"empty", OpKind::shape, fill_float},
    {"empty_like", OpKind::shape, same_cast},
    {"empty_permuted empty_strided new_empty_strided", OpKind::shape},
    {"new_empty", OpKind::shape, fill},
    {"_weight_int4pack_mm", OpKind::custom, unknown, no_attributes, {}, append_packed_linear},
    {"tensordot", OpKind::custom, tensordot, no_attributes, {}, append_tensordot},
    {"einsum", OpKind::custom, einsum, no_attributes, {}, append_einsum},
    {"_native_multi_head_attention", OpKind::custom, same_with_weights, no_attributes, {}, append_native_attention},
    {"_transformer_encoder_layer_fwd", OpKind::custom, same, no_attributes, {}, append_encoder_layer},
    {"weight_norm", OpKind::custom, same},
    {"cdist", OpKind::custom, pairwise_distance},
    {"mse_loss l1_loss huber_loss smooth_l1_loss binary_cross_entropy kl_div",
     OpKind::custom, unknown, no_attributes, {}, append_loss},
    {"cross_entropy_loss", OpKind::custom, unknown, no_attributes, {}, append_cross_entropy},
    {"triplet_margin_loss", OpKind::custom, unknown, no_attributes, {}, append_triplet_loss},
    // clang-format on
};

}  // namespace
}  // namespace aten_shapes

const AtenRow* find_aten_row(std::string_view target) {
    if (!is_of_known_library(target)) return nullptr;
    static const std::vector<AtenRow> rows = single_rows<AtenRow>(aten_shapes::grouped_rows);
    const std::string_view name = target.substr(target.rfind(':') + 1);
    const AtenRow* row = find_row<AtenRow>(rows, name);
    return row || !name.ends_with('_') ? row : find_row<AtenRow>(rows, name.substr(0, name.size() - 1));
}

bool is_of_known_library(std::string_view target) noexcept {
    static constexpr std::string_view libraries[] = {"aten",    "prims",  "quantized_decomposed", "torchvision",
                                                     "torchao", "export", "transformers"};
    const std::size_t colons = target.find("::");
    return colons == std::string_view::npos ||
           std::find(std::begin(libraries), std::end(libraries), target.substr(0, colons)) != std::end(libraries);
}

}  // namespace ftax
