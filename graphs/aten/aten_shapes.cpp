#include "graphs/aten/aten_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "graphs/aten/aten_shape_rules.hpp"
#include "graphs/aten/aten_table.hpp"

namespace ftax {
namespace aten_shapes {

std::string_view Call::name() const {
    const std::string_view target = call_.target;
    return target.substr(target.rfind(':') + 1);
}

void Call::fail(std::string_view what) const {
    call_.fail(what);
}

std::vector<const Tensor*> Call::tensors() const {
    std::vector<const Tensor*> result;
    for (const AtenArgument& argument : call_.arguments) {
        for (const TensorId id : argument.tensors) {
            if (id != no_tensor) result.push_back(&graph_.tensors[id]);
        }
    }
    return result;
}

std::vector<const Tensor*> Call::tensors(std::string_view argument) const {
    std::vector<const Tensor*> result;
    if (const AtenArgument* found = call_.find(argument)) {
        for (const TensorId id : found->tensors) {
            if (id != no_tensor) result.push_back(&graph_.tensors[id]);
        }
    }
    return result;
}

const Tensor& Call::first() const {
    for (const AtenArgument& argument : call_.arguments) {
        for (const TensorId id : argument.tensors) {
            if (id != no_tensor) return graph_.tensors[id];
        }
    }
    fail("it reads no tensor");
}

const Tensor& Call::tensor(std::string_view argument) const {
    const TensorId id = call_.tensor(argument);
    if (id == no_tensor) fail(fmt::format("argument '{}' is no tensor", argument));
    return graph_.tensors[id];
}

Shape Call::sizes(std::string_view argument) const {
    const AtenArgument* found = call_.find(argument);
    if (!found) return {};
    if (!found->sizes.empty()) return found->sizes;
    Shape result;
    for (const std::int64_t value : found->integers) result.push_back(constant(value));
    return result;
}

std::size_t Call::axis(std::int64_t axis, std::size_t rank) const {
    return static_cast<std::size_t>(call_.axis(axis, rank));
}

/// Source: c10/core/ScalarType.h, the numbers that TorchScript programs hold.
DType Call::dtype(DType fallback) const {
    static constexpr DType types[] = {DType::u8,      DType::i8,      DType::i16,     DType::i32,
                                      DType::i64,     DType::f16,     DType::f32,     DType::f64,
                                      DType::unknown, DType::c64,     DType::c128,    DType::boolean,
                                      DType::unknown, DType::unknown, DType::unknown, DType::bf16};
    const AtenArgument* found = call_.find("dtype");
    if (!found || found->integers.size() != 1) return fallback;
    const std::int64_t number = found->integers[0];
    return number >= 0 && number < static_cast<std::int64_t>(std::size(types)) ? types[number] : DType::unknown;
}

Expression Call::product(const Shape& shape, std::size_t begin, std::size_t end) const {
    Expression result = constant(1);
    for (std::size_t i = begin; i < end; ++i) result = pool().multiply(result, shape[i]);
    return result;
}

Shape Call::broadcast(const Shape& a, const Shape& b) const {
    const Shape& longer = a.size() >= b.size() ? a : b;
    const Shape& shorter = a.size() >= b.size() ? b : a;
    Shape result = longer;
    const std::size_t offset = longer.size() - shorter.size();
    for (std::size_t i = 0; i < shorter.size(); ++i) {
        Expression& dim = result[offset + i];
        if (is(dim, 1)) dim = shorter[i];
        const auto held = pool().constant_value(dim), other = pool().constant_value(shorter[i]);
        if (held && other && *held != *other && *other != 1)
            fail(fmt::format("sizes {} and {} do not broadcast", *held, *other));
        // A number against a symbol: the symbol can only be that number, or 1.
        if (!held && other && *other != 1) dim = shorter[i];
    }
    return result;
}

namespace {

struct Row {
    std::string_view name;  ///< without the `_` of the in-place variant
    Rule rule;
};

// One row per operator; elementwise operators of one operand that keep type and shape are listed below.
const Row table[] = {
    {"conv1d", conv},
    {"conv2d", conv},
    {"conv3d", conv},
    {"conv_transpose1d", conv_transpose},
    {"conv_transpose2d", conv_transpose},
    {"conv_transpose3d", conv_transpose},
    {"linear", linear},
    {"matmul", matmul},
    {"mm", matmul},
    {"bmm", matmul},
    {"mv", matmul},
    {"dot", matmul},
    {"_int_mm", integer_matmul},
    {"_grouped_mm", grouped_matmul},
    {"tensordot", tensordot},
    {"addmm", matmul_added},
    {"baddbmm", matmul_added},
    {"einsum", einsum},
    {"scaled_dot_product_attention", attention},
    {"_native_multi_head_attention", same_with_weights},
    {"_transformer_encoder_layer_fwd", same},
    {"lstm", recurrent},
    {"gru", recurrent},
    {"rnn_tanh", recurrent},
    {"rnn_relu", recurrent},
    {"lstm_cell", recurrent_cell},
    {"gru_cell", recurrent_cell},
    {"rnn_tanh_cell", recurrent_cell},
    {"rnn_relu_cell", recurrent_cell},
    {"batch_norm", same},
    {"instance_norm", same},
    {"layer_norm", same},
    {"group_norm", same},
    {"rms_norm", same},
    {"native_layer_norm", normalized},
    {"native_group_norm", normalized},
    {"native_batch_norm", normalized},
    {"softmax", same_cast},
    {"log_softmax", same_cast},
    {"avg_pool1d", pool},
    {"avg_pool2d", pool},
    {"avg_pool3d", pool},
    {"max_pool1d", pool},
    {"max_pool2d", pool},
    {"max_pool3d", pool},
    {"max_pool1d_with_indices", pool_with_indices},
    {"max_pool2d_with_indices", pool_with_indices},
    {"max_pool3d_with_indices", pool_with_indices},
    {"adaptive_avg_pool1d", adaptive_pool},
    {"adaptive_avg_pool2d", adaptive_pool},
    {"adaptive_avg_pool3d", adaptive_pool},
    {"adaptive_max_pool1d", adaptive_pool},
    {"adaptive_max_pool2d", adaptive_pool},
    {"adaptive_max_pool3d", adaptive_pool},
    {"upsample_nearest1d", resize},
    {"upsample_nearest2d", resize},
    {"upsample_nearest3d", resize},
    {"_upsample_nearest_exact2d", resize},
    {"upsample_linear1d", resize},
    {"upsample_bilinear2d", resize},
    {"_upsample_bilinear2d_aa", resize},
    {"upsample_trilinear3d", resize},
    {"upsample_bicubic2d", resize},
    {"_upsample_bicubic2d_aa", resize},
    {"grid_sampler", grid_sample},
    {"fft_fft", fft},
    {"fft_fft2", fft},
    {"fft_fftn", fft},
    {"fft_ifft", fft},
    {"fft_ifft2", fft},
    {"fft_ifftn", fft},
    {"fft_rfft", fft},
    {"fft_rfft2", fft},
    {"fft_rfftn", fft},
    {"fft_irfft", fft},
    {"fft_irfft2", fft},
    {"im2col", unfold_windows},
    {"cdist", pairwise_distance},

    {"add", pointwise},
    {"addcdiv", pointwise},
    {"addcmul", pointwise},
    {"atan2", pointwise},
    {"bitwise_and", pointwise},
    {"bitwise_left_shift", pointwise},
    {"bitwise_or", pointwise},
    {"bitwise_right_shift", pointwise},
    {"bitwise_xor", pointwise},
    {"clamp", pointwise},
    {"clip", pointwise},
    {"clamp_max", pointwise},
    {"clamp_min", pointwise},
    {"copysign", pointwise},
    {"div", division},
    {"divide", division},
    {"true_divide", division},
    {"floor_divide", pointwise},
    {"fmod", pointwise},
    {"heaviside", pointwise},
    {"ldexp", pointwise},
    {"lerp", pointwise},
    {"logaddexp", pointwise},
    {"maximum", pointwise},
    {"minimum", pointwise},
    {"mul", pointwise},
    {"multiply", pointwise},
    {"masked_fill", pointwise},
    {"masked_scatter", same},
    {"pow", pointwise},
    {"remainder", pointwise},
    {"rsub", pointwise},
    {"diff", differences},
    {"sub", pointwise},
    {"subtract", pointwise},
    {"xlogy", pointwise},
    {"__and__", pointwise},
    {"__or__", pointwise},
    {"__xor__", pointwise},
    {"__lshift__", pointwise},
    {"__rshift__", pointwise},
    {"prelu", same},
    {"where", where},
    {"eq", comparison},
    {"ne", comparison},
    {"lt", comparison},
    {"le", comparison},
    {"gt", comparison},
    {"ge", comparison},
    {"greater", comparison},
    {"logical_and", comparison},
    {"logical_or", comparison},
    {"logical_xor", comparison},
    {"logical_not", same_boolean},
    {"isfinite", same_boolean},
    {"isinf", same_boolean},
    {"isnan", same_boolean},
    {"to", convert},
    {"_to_copy", convert},
    {"type_as", convert_like},
    {"polar", polar},
    {"outer", outer},
    {"cos", same_float},
    {"erf", same_float},
    {"exp", same_float},
    {"expm1", same_float},
    {"log", same_float},
    {"log10", same_float},
    {"log1p", same_float},
    {"log2", same_float},
    {"reciprocal", same_float},
    {"rsqrt", same_float},
    {"sigmoid", same_float},
    {"sin", same_float},
    {"sinc", same_float},
    {"sqrt", same_float},
    {"tan", same_float},
    {"tanh", same_float},
    {"acos", same_float},
    {"asin", same_float},
    {"atan", same_float},
    {"cosh", same_float},
    {"sinh", same_float},
    {"logit", same_float},

    {"all", any_reduce},
    {"any", any_reduce},
    {"amax", reduce},
    {"amin", reduce},
    {"argmax", arg_reduce},
    {"argmin", arg_reduce},
    {"frobenius_norm", reduce},
    {"linalg_vector_norm", reduce},
    {"logsumexp", reduce},
    {"max", extremum},
    {"min", extremum},
    {"median", extremum},
    {"mean", reduce},
    {"norm", reduce},
    {"prod", reduce},
    {"std", reduce},
    {"sum", reduce},
    {"var", reduce},
    {"std_mean", moments},
    {"var_mean", moments},
    {"cosine_similarity", reduce},
    {"sort", sort},
    {"argsort", arg_reduce},
    {"topk", topk},
    {"histc", histogram},
    {"cumsum", same_cast},
    {"cumprod", same_cast},
    {"logcumsumexp", same},
    {"glu", halved},
    {"tril", same},
    {"triu", same},
    {"weight_norm", same},
    {"_weight_norm", same},

    {"arange", arange},
    {"linspace", arange},
    {"eye", eye},
    {"empty", fill_float},
    {"full", fill_float},
    {"ones", fill_float},
    {"rand", fill_float},
    {"randn", fill_float},
    {"randint", fill_float},
    {"zeros", fill_float},
    {"new_empty", fill},
    {"new_full", fill},
    {"new_ones", fill},
    {"new_zeros", fill},
    {"empty_like", same_cast},
    {"full_like", same_cast},
    {"ones_like", same_cast},
    {"rand_like", same_cast},
    {"randn_like", same_cast},
    {"zeros_like", same_cast},

    {"_unsafe_view", view},
    {"flatten", flatten},
    {"reshape", view},
    {"reshape_as", view_like},
    {"squeeze", squeeze},
    {"unflatten", unflatten},
    {"unsqueeze", unsqueeze},
    {"view", view},
    {"view_as", view_like},
    {"view_as_complex", complex_view},
    {"view_as_real", real_view},
    {"real", real_view},
    {"imag", real_view},
    {"mT", matrix_transpose},
    {"adjoint", matrix_transpose},
    {"movedim", movedim},
    {"moveaxis", movedim},
    {"numpy_T", permute},
    {"permute", permute},
    {"swapaxes", transpose},
    {"swapdims", transpose},
    {"t", matrix_transpose},
    {"transpose", transpose},
    {"diagonal", diagonal},
    {"narrow", narrow},
    {"select", select},
    {"slice", slice},
    {"unfold", unfold},
    {"chunk", chunk},
    {"split", split},
    {"split_with_sizes", split},
    {"tensor_split", tensor_split},
    {"unbind", unbind},
    {"unsafe_chunk", chunk},
    {"unsafe_split", split},
    {"broadcast_tensors", broadcast_tensors},
    {"broadcast_to", expand},
    {"expand", expand},
    {"expand_as", view_like},
    {"meshgrid", meshgrid},
    {"cat", concat},
    {"concat", concat},
    {"concatenate", concat},
    {"stack", stack},
    {"constant_pad_nd", pad},
    {"pad", pad},
    {"reflection_pad1d", pad},
    {"reflection_pad2d", pad},
    {"replication_pad1d", pad},
    {"replication_pad2d", pad},
    {"replication_pad3d", pad},
    {"repeat", repeat},
    {"tile", repeat},
    {"repeat_interleave", repeat_interleave},
    {"pixel_shuffle", pixel_shuffle},
    {"pixel_unshuffle", pixel_unshuffle},
    {"one_hot", one_hot},
    {"embedding", embedding},
    {"gather", gather},
    {"take_along_dim", gather},
    {"index", index},
    {"_unsafe_index", index},
    {"index_select", index_select},
};

/// Operators whose output is like their first operand.
constexpr std::string_view like_first[] = {"abs",
                                           "alias",
                                           "alpha_dropout",
                                           "bitwise_not",
                                           "ceil",
                                           "celu",
                                           "channel_shuffle",
                                           "clone",
                                           "contiguous",
                                           "copy",
                                           "detach",
                                           "dropout",
                                           "elu",
                                           "erfinv",
                                           "feature_dropout",
                                           "fill",
                                           "flip",
                                           "floor",
                                           "frac",
                                           "gelu",
                                           "hardshrink",
                                           "hardsigmoid",
                                           "hardswish",
                                           "hardtanh",
                                           "index_add",
                                           "index_copy",
                                           "index_fill",
                                           "index_put",
                                           "leaky_relu",
                                           "lift_fresh",
                                           "log_sigmoid",
                                           "mish",
                                           "nan_to_num",
                                           "neg",
                                           "relu",
                                           "relu6",
                                           "requires_grad",
                                           "roll",
                                           "round",
                                           "rot90",
                                           "rrelu",
                                           "scatter",
                                           "scatter_add",
                                           "scatter_reduce",
                                           "select_scatter",
                                           "selu",
                                           "sign",
                                           "silu",
                                           "slice_scatter",
                                           "softplus",
                                           "softshrink",
                                           "square",
                                           "threshold",
                                           "trunc",
                                           "zero",
                                           "normal",
                                           "uniform",
                                           "bernoulli",
                                           "resolve_conj",
                                           "resolve_neg",
                                           "conj",
                                           "fake_quantize_per_tensor_affine",
                                           "fake_quantize_per_channel_affine"};

Rule find_rule(std::string_view name) {
    static const auto rules = [] {
        std::map<std::string_view, Rule, std::less<>> result;
        for (const Row& row : table) result.emplace(row.name, row.rule);
        for (const std::string_view operation : like_first) result.emplace(operation, same);
        return result;
    }();
    auto found = rules.find(name);
    if (found == rules.end() && name.ends_with('_')) found = rules.find(name.substr(0, name.size() - 1));
    return found == rules.end() ? nullptr : found->second;
}

}  // namespace
}  // namespace aten_shapes

std::optional<std::vector<AtenOutput>> infer_aten(Graph& graph, const AtenCall& call) {
    if (!is_of_known_library(call.target)) return std::nullopt;
    const aten_shapes::Call context(graph, call);
    const aten_shapes::Rule rule = aten_shapes::find_rule(context.name());
    if (!rule) return std::nullopt;
    for (const Tensor* tensor : context.tensors()) {
        if (!tensor->known_shape) return std::nullopt;
    }
    return rule(context);
}

}  // namespace ftax
