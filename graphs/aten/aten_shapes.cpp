#include "graphs/aten/aten_shapes.hpp"

#include <fmt/format.h>

#include <map>

#include "graphs/aten/aten_shape_rules.hpp"
#include "graphs/aten/aten_table.hpp"
#include "graphs/aten/scalar_types.hpp"
#include "src/core/excerpt.hpp"

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

DType Call::dtype(DType fallback) const {
    const AtenArgument* found = call_.find("dtype");
    return found && found->integers.size() == 1 ? dtype_of_scalar_type(found->integers[0]) : fallback;
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
    std::string_view names;  ///< separated by spaces, without the `_` of the in-place variants
    Rule rule;
};

const Row table[] = {
    {"conv1d conv2d conv3d", conv},
    {"conv_transpose1d conv_transpose2d conv_transpose3d", conv_transpose},
    {"linear", linear},
    {"matmul mm bmm mv dot", matmul},
    {"_int_mm", integer_matmul},
    {"_grouped_mm", grouped_matmul},
    {"tensordot", tensordot},
    {"addmm baddbmm", matmul_added},
    {"einsum", einsum},
    {"scaled_dot_product_attention", attention},
    {"_native_multi_head_attention", same_with_weights},
    {"_transformer_encoder_layer_fwd batch_norm instance_norm layer_norm group_norm rms_norm "
     "masked_scatter prelu logcumsumexp tril triu weight_norm _weight_norm abs alias alpha_dropout "
     "bitwise_not ceil celu channel_shuffle clone contiguous copy detach dropout elu erfinv "
     "feature_dropout fill flip floor frac gelu hardshrink hardsigmoid hardswish hardtanh index_add "
     "index_copy index_fill index_put leaky_relu lift_fresh log_sigmoid mish nan_to_num neg relu relu6 "
     "requires_grad roll round rot90 rrelu scatter scatter_add scatter_reduce select_scatter selu sign "
     "silu slice_scatter softplus softshrink square threshold trunc zero normal uniform bernoulli "
     "resolve_conj resolve_neg conj fake_quantize_per_tensor_affine fake_quantize_per_channel_affine",
     same},
    {"lstm gru rnn_tanh rnn_relu", recurrent},
    {"lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell", recurrent_cell},
    {"native_layer_norm native_group_norm native_batch_norm", normalized},
    {"softmax log_softmax cumsum cumprod empty_like full_like ones_like rand_like randn_like zeros_like", same_cast},
    {"avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d", pool},
    {"max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices", pool_with_indices},
    {"adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
     "adaptive_max_pool3d",
     adaptive_pool},
    {"upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact2d upsample_linear1d "
     "upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d upsample_bicubic2d "
     "_upsample_bicubic2d_aa",
     resize},
    {"grid_sampler", grid_sample},
    {"fft_fft fft_fft2 fft_fftn fft_ifft fft_ifft2 fft_ifftn fft_rfft fft_rfft2 fft_rfftn fft_irfft "
     "fft_irfft2",
     fft},
    {"im2col", unfold_windows},
    {"cdist", pairwise_distance},
    {"add addcdiv addcmul atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor "
     "clamp clip clamp_max clamp_min copysign floor_divide fmod heaviside ldexp lerp logaddexp maximum "
     "minimum mul multiply masked_fill pow remainder rsub sub subtract xlogy __and__ __or__ __xor__ "
     "__lshift__ __rshift__",
     pointwise},
    {"div divide true_divide", division},
    {"diff", differences},
    {"where", where},
    {"eq ne lt le gt ge greater logical_and logical_or logical_xor", comparison},
    {"logical_not isfinite isinf isnan", same_boolean},
    {"to _to_copy", convert},
    {"type_as", convert_like},
    {"polar", polar},
    {"outer", outer},
    {"cos erf exp expm1 log log10 log1p log2 reciprocal rsqrt sigmoid sin sinc sqrt tan tanh acos asin "
     "atan cosh sinh logit",
     same_float},
    {"all any", any_reduce},
    {"amax amin frobenius_norm linalg_vector_norm logsumexp mean norm prod std sum var cosine_similarity", reduce},
    {"argmax argmin argsort", arg_reduce},
    {"max min median", extremum},
    {"std_mean var_mean", moments},
    {"sort", sort},
    {"topk", topk},
    {"histc", histogram},
    {"glu", halved},
    {"arange linspace", arange},
    {"eye", eye},
    {"empty full ones rand randn randint zeros", fill_float},
    {"new_empty new_full new_ones new_zeros", fill},
    {"_unsafe_view reshape view", view},
    {"flatten", flatten},
    {"reshape_as view_as expand_as", view_like},
    {"squeeze", squeeze},
    {"unflatten", unflatten},
    {"unsqueeze", unsqueeze},
    {"view_as_complex", complex_view},
    {"view_as_real real imag", real_view},
    {"mT adjoint t", matrix_transpose},
    {"movedim moveaxis", movedim},
    {"numpy_T permute", permute},
    {"swapaxes swapdims transpose", transpose},
    {"diagonal", diagonal},
    {"narrow", narrow},
    {"select", select},
    {"slice", slice},
    {"unfold", unfold},
    {"chunk unsafe_chunk", chunk},
    {"split split_with_sizes unsafe_split", split},
    {"tensor_split", tensor_split},
    {"unbind", unbind},
    {"broadcast_tensors", broadcast_tensors},
    {"broadcast_to expand", expand},
    {"meshgrid", meshgrid},
    {"cat concat concatenate", concat},
    {"stack", stack},
    {"constant_pad_nd pad reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d "
     "replication_pad3d",
     pad},
    {"repeat tile", repeat},
    {"repeat_interleave", repeat_interleave},
    {"pixel_shuffle", pixel_shuffle},
    {"pixel_unshuffle", pixel_unshuffle},
    {"one_hot", one_hot},
    {"embedding", embedding},
    {"gather take_along_dim", gather},
    {"index _unsafe_index", index},
    {"index_select", index_select},
};

Rule find_rule(std::string_view name) {
    static const auto rules = [] {
        std::map<std::string_view, Rule, std::less<>> result;
        for (const Row& row : table) {
            for (const std::string_view listed : words_of(row.names)) result.emplace(listed, row.rule);
        }
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
