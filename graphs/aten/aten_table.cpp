#include "graphs/aten/aten_table.hpp"

#include <algorithm>
#include <map>

#include "src/core/excerpt.hpp"

namespace ftax {
namespace {

using namespace aten_attributes;

constexpr std::string_view own_name = AtenRow::own_name;
constexpr std::string_view norm_operands = "input weight bias running_mean running_var";
constexpr std::string_view product_with_sum = "mat1 mat2 self";
constexpr std::string_view batched_product_with_sum = "batch1 batch2 self";

// One row for the operators that are the same but for their names, in the order of OpKind; looked up by name.
const AtenRow table[] = {
    {"conv1d conv2d conv3d convolution _convolution", OpKind::conv, {}, read_conv, "input weight bias"},
    {"deform_conv2d", OpKind::conv, {}, no_attributes, "input weight bias offset mask"},
    {"conv_transpose1d conv_transpose2d conv_transpose3d", OpKind::conv_transpose, {}, read_conv, "input weight bias"},
    {"linear", OpKind::linear, {}, no_attributes, "input weight bias"},
    {"matmul mm mv dot bmm _int_mm", OpKind::matmul},
    {"addmm", OpKind::matmul, {}, no_attributes, product_with_sum},
    {"baddbmm", OpKind::matmul, {}, no_attributes, batched_product_with_sum},
    {"_grouped_mm", OpKind::matmul, {}, read_experts, "self mat2"},
    // Of transformers, in exported models.
    {"grouped_mm_fallback", OpKind::matmul, {}, read_experts, "input weight"},
    {"scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu",
     OpKind::attention,
     {},
     read_causal,
     "query key value attn_mask"},
    {"_scaled_dot_product_flash_attention", OpKind::attention, {}, read_causal, "query key value"},
    {"_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention",
     OpKind::attention,
     {},
     read_causal,
     "query key value attn_bias"},
    {"lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell",
     OpKind::recurrent,
     {},
     read_recurrent},
    {"batch_norm native_batch_norm cudnn_batch_norm", OpKind::batch_norm, {}, read_training, norm_operands},
    {"_native_batch_norm_legit_no_training", OpKind::batch_norm, {}, no_attributes, norm_operands},
    {"instance_norm", OpKind::instance_norm, {}, no_attributes, norm_operands},
    {"layer_norm native_layer_norm", OpKind::layer_norm, {}, read_normalized, "input weight bias"},
    {"rms_norm _fused_rms_norm", OpKind::rms_norm, {}, read_normalized, "input weight"},
    {"group_norm native_group_norm", OpKind::group_norm, {}, read_groups, "input weight bias"},
    {"softmax _softmax _safe_softmax", OpKind::softmax, {}, read_dim},
    {"log_softmax _log_softmax", OpKind::log_softmax, {}, read_dim},
    {"abs acos add addcdiv addcmul angle asin atan atan2 bitwise_and bitwise_left_shift bitwise_not "
     "bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp complex copysign cos cosh div elu erf "
     "erfinv exp expm1 floor floor_divide frac gelu greater hardshrink hardsigmoid hardswish heaviside "
     "isfinite isinf isnan leaky_relu ldexp lerp log log10 log1p log2 log_sigmoid logaddexp logit mish mul "
     "nan_to_num neg polar pow prelu reciprocal relu relu6 round rrelu rsqrt selu sigmoid sign silu sin "
     "sinc sinh softplus softshrink sqrt square sub tan tanh threshold tril triu trunc where xlogy glu",
     OpKind::pointwise, own_name},
    {"clamp_max clamp_min clip hardtanh", OpKind::pointwise, "clamp"},
    {"diff rsub subtract", OpKind::pointwise, "sub"},
    {"divide true_divide", OpKind::pointwise, "div"},
    {"eq", OpKind::pointwise, "equal"},
    {"fmod remainder", OpKind::pointwise, "mod"},
    {"ge", OpKind::pointwise, "greater_or_equal"},
    {"gt", OpKind::pointwise, "greater"},
    {"le", OpKind::pointwise, "less_or_equal"},
    {"logical_and __and__", OpKind::pointwise, "and"},
    {"logical_not", OpKind::pointwise, "not"},
    {"logical_or __or__", OpKind::pointwise, "or"},
    {"logical_xor __xor__", OpKind::pointwise, "xor"},
    {"lt", OpKind::pointwise, "less"},
    {"masked_fill", OpKind::pointwise, "where"},
    {"maximum", OpKind::pointwise, "max"},
    {"minimum", OpKind::pointwise, "min"},
    {"multiply outer", OpKind::pointwise, "mul"},
    {"ne", OpKind::pointwise, "not_equal"},
    {"_prelu_kernel", OpKind::pointwise, "prelu"},
    {"special_expm1", OpKind::pointwise, "expm1"},
    {"__lshift__", OpKind::pointwise, "bitwise_left_shift"},
    {"__rshift__", OpKind::pointwise, "bitwise_right_shift"},
    {"to _to_copy type_as convert_element_type", OpKind::cast},
    {"all any argmax argmin logsumexp max mean median min norm prod std std_mean sum var var_mean", OpKind::reduce,
     own_name, read_reduce},
    {"amax", OpKind::reduce, "max", read_reduce},
    {"amin", OpKind::reduce, "min", read_reduce},
    {"bincount cosine_similarity histc", OpKind::reduce, own_name},
    {"frobenius_norm linalg_vector_norm", OpKind::reduce, "norm", read_reduce},
    {"_weight_norm _weight_norm_interface", OpKind::reduce, "weight_norm"},
    {"cumprod cumsum logcumsumexp", OpKind::cumulative, own_name, read_dim},
    {"argsort", OpKind::sort, "sort", read_dim},
    {"searchsorted bucketize", OpKind::sort, own_name},
    {"sort topk", OpKind::sort, own_name, read_dim},
    {"avg_pool1d avg_pool2d avg_pool3d", OpKind::pool, "average", read_pool},
    {"max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices "
     "max_pool3d_with_indices",
     OpKind::pool, "max", read_pool},
    {"adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d "
     "_adaptive_avg_pool3d",
     OpKind::global_pool, "average"},
    {"adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d", OpKind::global_pool, "max"},
    {"upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact2d", OpKind::resize, "nearest"},
    {"upsample_linear1d", OpKind::resize, "linear"},
    {"upsample_bilinear2d _upsample_bilinear2d_aa", OpKind::resize, "bilinear"},
    {"upsample_trilinear3d", OpKind::resize, "trilinear"},
    {"upsample_bicubic2d _upsample_bicubic2d_aa", OpKind::resize, "bicubic"},
    {"grid_sampler grid_sampler_2d", OpKind::resize, "grid_sample"},
    {"embedding embedding_bag", OpKind::embedding, {}, no_attributes, "weight indices"},
    {"gather index index_select _unsafe_index take take_along_dim masked_select roi_align", OpKind::gather},
    {"index_add index_copy index_fill index_put _index_put_impl _unsafe_index_put masked_scatter scatter "
     "scatter_add scatter_reduce select_scatter slice_scatter",
     OpKind::scatter},
    {"_reshape_alias _unsafe_view flatten imag ravel real reshape reshape_as unflatten view view_as "
     "view_as_complex view_as_real _conj conj",
     OpKind::reshape},
    {"squeeze", OpKind::reshape, {}, read_squeezed},
    {"unsqueeze", OpKind::reshape, {}, read_new_dim},
    {"adjoint mT t", OpKind::transpose, {}, read_matrix_transpose},
    {"movedim moveaxis numpy_T", OpKind::transpose},
    {"permute", OpKind::transpose, {}, read_permute},
    {"swapaxes swapdims transpose", OpKind::transpose, {}, read_transpose},
    {"as_strided diagonal unfold", OpKind::slice},
    {"narrow slice", OpKind::slice, {}, read_slice},
    {"select", OpKind::slice, {}, read_select},
    {"chunk split split_with_sizes tensor_split unbind unsafe_chunk unsafe_split", OpKind::split, {}, read_first_dim},
    {"hsplit", OpKind::split},
    {"broadcast_tensors broadcast_to expand expand_as meshgrid", OpKind::expand},
    {"cat concat concatenate", OpKind::concat, {}, read_joined_dim},
    {"hstack vstack", OpKind::concat},
    {"stack", OpKind::concat, {}, read_new_dim},
    {"constant_pad_nd pad reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d "
     "replication_pad3d",
     OpKind::pad},
    {"channel_shuffle clone col2im contiguous copy diag_embed flip im2col lift_fresh_copy one_hot "
     "pixel_shuffle pixel_unshuffle repeat repeat_interleave rot90 tile",
     OpKind::copy},
    {"roll", OpKind::copy, {}, read_roll},
    {"resolve_conj resolve_neg alias alpha_dropout detach dropout feature_dropout lift_fresh "
     "native_dropout requires_grad",
     OpKind::identity},
    {"arange bernoulli eye fill full full_like linspace new_full new_ones new_zeros normal ones ones_like "
     "rand rand_like randint randn randn_like scalar_tensor tril_indices triu_indices uniform hann_window "
     "zero zeros zeros_like",
     OpKind::fill},
    {"fft_fft fft_fft2 fft_fftn fft_ifft fft_ifft2 fft_ifftn fft_irfft fft_irfft2 fft_rfft fft_rfft2 "
     "fft_rfftn stft _fft_c2c _fft_c2r _fft_r2c",
     OpKind::fft},
    {"fake_quantize_per_channel_affine fake_quantize_per_tensor_affine quantize_per_channel "
     "quantize_per_tensor",
     OpKind::quantize},
    {"dequantize dequantize_per_channel dequantize_per_tensor", OpKind::dequantize},
    {"nonzero nonzero_numpy unique_consecutive unique_dim _unique2 nms", OpKind::nonzero},
    {"_local_scalar_dense equal item", OpKind::to_host},
    {"empty empty_like empty_permuted empty_strided new_empty new_empty_strided", OpKind::shape},
};

}  // namespace

const AtenRow* find_aten_row(std::string_view target) {
    if (!is_of_known_library(target)) return nullptr;
    static const auto rows = [] {
        std::map<std::string_view, AtenRow, std::less<>> result;
        for (const AtenRow& row : table) {
            for (const std::string_view name : words_of(row.name)) result.emplace(name, row).first->second.name = name;
        }
        return result;
    }();
    const std::string_view name = target.substr(target.rfind(':') + 1);
    auto found = rows.find(name);
    if (found == rows.end() && name.ends_with('_')) found = rows.find(name.substr(0, name.size() - 1));
    return found == rows.end() ? nullptr : &found->second;
}

bool is_of_known_library(std::string_view target) noexcept {
    static constexpr std::string_view libraries[] = {"aten", "prims", "quantized_decomposed", "torchvision",
                                                     "transformers"};
    const std::size_t colons = target.find("::");
    return colons == std::string_view::npos ||
           std::find(std::begin(libraries), std::end(libraries), target.substr(0, colons)) != std::end(libraries);
}

}  // namespace ftax
