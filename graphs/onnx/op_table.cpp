#include "graphs/onnx/rules.hpp"
#include "src/core/operator_rows.hpp"

namespace ftax::onnx_import {
namespace {

/// Every operator ftax knows, in the order of OpKind (see single_rows()): names with functions, canonical kind, rule
/// for types and attributes, required inputs, rule for known elements, flags.
constexpr OpRow grouped_rows[] = {
    // clang-format off
    {"Conv com.microsoft::FusedConv", OpKind::conv, conv, 2},
    {"ConvInteger", OpKind::conv, conv_integer, 2, nullptr, reads_two},
    {"DeformConv", OpKind::conv, conv, 3},
    {"QLinearConv", OpKind::conv, qlinear_conv, 8},
    {"com.microsoft::NhwcConv com.microsoft::NhwcFusedConv", OpKind::conv, nhwc_conv, 2},
    {"ConvTranspose com.microsoft::ConvTransposeWithDynamicPads", OpKind::conv_transpose, conv_transpose, 2},
    {"com.microsoft::MatMulBnb4 com.microsoft::MatMulNBits", OpKind::linear, matmul_nbits, 3},
    {"AffineGrid", OpKind::matmul, affine_grid, 2},
    {"Einsum", OpKind::matmul, einsum, 1},
    {"Gemm com.microsoft::FusedGemm", OpKind::matmul, gemm, 2},
    {"MatMul com.microsoft::DynamicQuantizeMatMul com.microsoft::MatMulIntegerToFloat", OpKind::matmul, matmul, 2, nullptr, reads_two},
    {"MatMulInteger com.microsoft::MatMulInteger16", OpKind::matmul, matmul_integer, 2, nullptr, reads_two},
    {"QLinearMatMul", OpKind::matmul, qlinear_matmul, 8},
    {"com.microsoft::FusedMatMul com.microsoft::FusedMatMulActivation com.microsoft::TransposeMatMul",
     OpKind::matmul, fused_matmul, 2, nullptr, reads_two},
    {"Attention", OpKind::attention, attention, 3},
    {"com.microsoft::Attention com.microsoft::QAttention", OpKind::attention, packed_attention, 2},
    {"com.microsoft::DecoderMaskedMultiHeadAttention com.microsoft::MultiHeadAttention",
     OpKind::attention, multi_head_attention, 1},
    {"com.microsoft::GroupQueryAttention com.microsoft::SparseAttention", OpKind::attention, group_query_attention, 1},
    {"GRU=gru LSTM=lstm RNN=rnn", OpKind::recurrent, recurrent, 3},
    {"BatchNormalization", OpKind::batch_norm, batch_norm, 5},
    {"LayerNormalization com.microsoft::LayerNormalization", OpKind::layer_norm, layer_norm, 2},
    {"com.microsoft::SkipLayerNormalization", OpKind::layer_norm, skip_layer_norm, 3},
    {"GroupNormalization com.microsoft::GroupNorm com.microsoft::SkipGroupNorm", OpKind::group_norm, group_norm, 3},
    {"InstanceNormalization", OpKind::instance_norm, channel_norm, 3},
    {"MeanVarianceNormalization", OpKind::instance_norm, channel_norm, 1},
    {"LpNormalization", OpKind::rms_norm, lp_norm, 1},
    {"RMSNormalization SimplifiedLayerNormalization com.microsoft::SimplifiedLayerNormalization",
     OpKind::rms_norm, layer_norm, 2},
    {"com.microsoft::SkipSimplifiedLayerNormalization", OpKind::rms_norm, skip_layer_norm, 3},
    {"LRN", OpKind::local_response_norm, channel_norm, 1},
    {"Hardmax Softmax", OpKind::softmax, softmax, 1},
    {"com.microsoft::BiasSoftmax", OpKind::softmax, bias_softmax, 2},
    {"com.microsoft::QLinearSoftmax", OpKind::softmax, qlinear_same, 1},
    {"LogSoftmax", OpKind::log_softmax, softmax, 1},
    {"Abs Ceil Exp Floor Log Neg Reciprocal Relu Round Sign Sqrt",
     OpKind::pointwise, same_as_first, 1, evaluate_elementwise},
    {"Acos Acosh Asin Asinh Atan Atanh BitwiseNot=bitwise_not Celu Cos Cosh Elu Erf Gelu HardSigmoid HardSwish "
     "LeakyRelu=leaky_relu Mish PRelu ParametricSoftplus=softplus Scale=mul ScaledTanh=tanh Selu Shrink Sigmoid Sin "
     "Sinh Softplus Softsign Swish=silu Tan Tanh ThresholdedRelu=threshold Trilu com.microsoft::Trilu",
     OpKind::pointwise, same_as_first, 1},
    {"Add Div Mod Mul Pow Sub", OpKind::pointwise, broadcast_all, 2, evaluate_elementwise},
    {"And Equal Greater GreaterOrEqual=greater_or_equal Less LessOrEqual=less_or_equal Or Xor",
     OpKind::pointwise, broadcast_boolean, 2, evaluate_elementwise},
    {"Bernoulli", OpKind::pointwise, like_first, 1, nullptr, never_folded},
    {"BitShift=bit_shift BitwiseAnd=bitwise_and BitwiseOr=bitwise_or BitwiseXor=bitwise_xor",
     OpKind::pointwise, broadcast_all, 2},
    {"Clip=clamp", OpKind::pointwise, clip, 1, nullptr, reads_first},
    {"Dropout", OpKind::pointwise, dropout, 1, nullptr, reads_first},
    {"IsInf IsNaN", OpKind::pointwise, same_boolean, 1},
    {"Max Min Sum=add", OpKind::pointwise, broadcast_all, 1, evaluate_elementwise},
    {"Mean", OpKind::pointwise, broadcast_all, 1},
    {"Not", OpKind::pointwise, same_boolean, 1, evaluate_elementwise},
    {"RotaryEmbedding=rotary_embedding com.microsoft::GemmaRotaryEmbedding=rotary_embedding "
     "com.microsoft::RotaryEmbedding=rotary_embedding", OpKind::pointwise, rotary_embedding, 1},
    {"Where", OpKind::pointwise, where, 3, evaluate_elementwise},
    {"com.microsoft::BiasAdd=add com.microsoft::BiasDropout=add com.microsoft::BiasGelu=gelu "
     "com.microsoft::FastGelu=gelu com.microsoft::Gelu com.microsoft::QuickGelu=quick_gelu",
     OpKind::pointwise, bias_function, 1},
    {"com.microsoft::BiasSplitGelu=gelu", OpKind::pointwise, bias_split_gelu, 2},
    {"com.microsoft::QLinearAdd=add com.microsoft::QLinearLeakyRelu=leaky_relu com.microsoft::QLinearMul=mul "
     "com.microsoft::QLinearSigmoid=sigmoid", OpKind::pointwise, qlinear_same, 1},
    {"BitCast", OpKind::cast, cast, 1},
    {"Cast", OpKind::cast, cast, 1, evaluate_cast},
    {"CastLike", OpKind::cast, cast_like, 2, evaluate_cast, reads_first},
    {"ArgMax ArgMin", OpKind::reduce, arg_reduce, 1},
    {"Det", OpKind::reduce, det, 1},
    {"ReduceL1=norm1 ReduceL2=norm2 ReduceLogSum=log_sum ReduceLogSumExp=log_sum_exp ReduceMax=max ReduceMean=mean "
     "ReduceMin=min ReduceProd=prod ReduceSum=sum ReduceSumSquare=sum_square",
     OpKind::reduce, reduce, 1, evaluate_reduce, reads_first},
    {"CumProd=prod CumSum=sum", OpKind::cumulative, cumulative, 2, evaluate_cumulative, reads_first},
    {"Multinomial", OpKind::sort, multinomial, 1, nullptr, never_folded},
    {"TopK", OpKind::sort, top_k, 1, nullptr, reads_first},
    {"Unique com.microsoft::Unique", OpKind::sort, unique, 1},
    {"AveragePool=average LpPool=lp MaxPool=max", OpKind::pool, pool, 1},
    {"GlobalAveragePool=average GlobalLpPool=lp GlobalMaxPool=max", OpKind::global_pool, global_pool, 1},
    {"GridSample=grid_sample com.microsoft::GridSample=grid_sample", OpKind::resize, grid_sample, 2},
    {"Resize", OpKind::resize, resize, 1, nullptr, reads_first},
    {"Upsample", OpKind::resize, upsample, 1, nullptr, reads_first},
    {"com.microsoft::EmbedLayerNormalization", OpKind::embedding, embed_layer_norm, 1},
    {"Gather", OpKind::gather, gather, 2, evaluate_gather},
    {"GatherElements", OpKind::gather, gather_elements, 2},
    {"GatherND com.microsoft::GatherND", OpKind::gather, gather_nd, 2},
    {"MaxRoiPool", OpKind::gather, roi_pool, 2},
    {"RoiAlign", OpKind::gather, roi_pool, 3},
    {"Col2Im", OpKind::scatter, col2im, 3, nullptr, reads_first},
    {"MaxUnpool", OpKind::scatter, max_unpool, 2},
    {"OneHot", OpKind::scatter, one_hot, 3, nullptr, reads_first},
    {"Scatter ScatterElements", OpKind::scatter, scatter, 3},
    {"ScatterND", OpKind::scatter, scatter, 3, evaluate_scatter_nd},
    {"TensorScatter", OpKind::scatter, same_as_first, 2},
    {"Flatten", OpKind::reshape, flatten, 1, evaluate_copy},
    {"Reshape", OpKind::reshape, reshape, 1, evaluate_copy, any_rank | reads_first},
    {"Squeeze", OpKind::reshape, squeeze, 1, evaluate_copy, reads_first},
    {"Unsqueeze", OpKind::reshape, unsqueeze, 1, evaluate_copy, reads_first},
    {"Transpose", OpKind::transpose, transpose, 1, evaluate_transpose},
    {"Slice", OpKind::slice, slice, 1, evaluate_slice, reads_first},
    {"Split", OpKind::split, split, 1, evaluate_split, reads_first},
    {"Expand", OpKind::expand, expand, 2, evaluate_expand, reads_first},
    {"Concat", OpKind::concat, concat, 1, evaluate_concat},
    {"ConcatFromSequence", OpKind::concat, concat_from_sequence, 1, nullptr, any_rank},
    {"CenterCropPad", OpKind::pad, center_crop_pad, 2, nullptr, reads_first},
    {"Pad", OpKind::pad, pad, 1, nullptr, reads_first},
    {"DepthToSpace SpaceToDepth", OpKind::copy, depth_to_space, 1},
    {"ReverseSequence", OpKind::copy, same_as_first, 2},
    {"Tile", OpKind::copy, tile, 2, evaluate_tile, reads_first},
    {"BlackmanWindow HammingWindow HannWindow", OpKind::fill, window_function, 1, nullptr, reads_none},
    {"Constant", OpKind::fill, constant, 0, nullptr, any_rank},
    {"ConstantOfShape", OpKind::fill, constant_of_shape, 1, nullptr, any_rank | reads_none},
    {"EyeLike", OpKind::fill, like_first, 1, nullptr, reads_none},
    {"MelWeightMatrix", OpKind::fill, mel_weight_matrix, 5, nullptr, reads_none},
    {"RandomNormal=random RandomUniform=random", OpKind::fill, random_shape, 0, nullptr, never_folded},
    {"RandomNormalLike=random RandomUniformLike=random", OpKind::fill, like_first, 1, nullptr, never_folded | reads_none},
    {"Range com.microsoft::Range", OpKind::fill, range, 3, evaluate_range, reads_none},
    {"DFT", OpKind::fft, dft, 1, nullptr, reads_first},
    {"STFT", OpKind::fft, stft, 2},
    {"DynamicQuantizeLinear com.microsoft::DynamicQuantizeLinear", OpKind::quantize, dynamic_quantize, 1},
    {"QuantizeLinear com.microsoft::QuantizeLinear", OpKind::quantize, quantize, 2},
    {"DequantizeLinear com.microsoft::DequantizeLinear", OpKind::dequantize, dequantize, 2, nullptr, never_folded},
    {"Compress", OpKind::nonzero, compress, 2},
    {"NonMaxSuppression", OpKind::nonzero, non_max_suppression, 2},
    {"NonZero", OpKind::nonzero, nonzero, 1, evaluate_nonzero},
    {"OptionalHasElement", OpKind::shape, optional_has_element, 0, nullptr, any_rank},
    {"SequenceLength", OpKind::shape, sequence_length, 1, nullptr, any_rank},
    {"Shape", OpKind::shape, shape, 1},
    {"Size", OpKind::shape, size, 1},
    {"Identity", OpKind::identity, alias_first, 1},
    {"Optional OptionalGetElement", OpKind::identity, optional_pass, 0, nullptr, any_rank},
    {"SequenceAt", OpKind::identity, sequence_at, 2, nullptr, any_rank},
    {"SequenceConstruct", OpKind::identity, sequence_construct, 1, nullptr, any_rank},
    {"SequenceEmpty", OpKind::identity, sequence_empty, 0, nullptr, any_rank},
    {"SequenceErase", OpKind::identity, sequence_erase, 1, nullptr, any_rank},
    {"SequenceInsert", OpKind::identity, sequence_insert, 2, nullptr, any_rank},
    {"SplitToSequence", OpKind::identity, split_to_sequence, 1},
    {"com.microsoft::Inverse", OpKind::custom, same_as_first, 1},
    // clang-format on
};

}  // namespace

std::span<const OpRow> op_table() {
    static const std::vector<OpRow> rows = single_rows<OpRow>(grouped_rows);
    return rows;
}

const OpRow* find_row(std::string_view domain, std::string_view op_type) {
    std::string name(op_type);
    if (!domain.empty()) name = std::string(domain) + "::" + name;
    return ftax::find_row(op_table(), name);
}

}  // namespace ftax::onnx_import
