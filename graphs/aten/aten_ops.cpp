#include "graphs/aten/aten_ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "ftax/error.hpp"
#include "src/core/excerpt.hpp"

namespace ftax {
namespace {

using Integers = std::vector<std::int64_t>;

[[noreturn]] void fail(const AtenCall& call, std::string_view what) {
    throw Error(ErrorCode::model, fmt::format("{} ({}): {}", excerpt(call.name), excerpt(call.target), what));
}

const Tensor& required(const Graph& graph, const AtenCall& call, std::string_view argument) {
    const TensorId id = call.tensor(argument);
    if (id == no_tensor) fail(call, fmt::format("argument '{}' is missing", argument));
    return graph.tensors[id];
}

const Tensor& first_output(const Graph& graph, const AtenCall& call) {
    if (call.outputs.empty()) fail(call, "it has no output");
    return graph.tensors[call.outputs[0]];
}

std::int64_t axis_of(const AtenCall& call, std::int64_t axis, std::size_t rank) {
    const auto dimensions = std::max<std::int64_t>(1, static_cast<std::int64_t>(rank));
    if (axis < -dimensions || axis >= dimensions) fail(call, fmt::format("dimension {} of {}", axis, rank));
    return axis < 0 ? axis + dimensions : axis;
}

/// What an attribute reader sees: the call and the graph it goes into.
struct Context {
    const Graph& graph;
    const AtenCall& call;
    std::vector<Attribute>& attributes;

    void add(std::string name, AttributeValue value) const {
        attributes.push_back({std::move(name), std::move(value)});
    }
    [[nodiscard]] std::size_t input_rank() const {
        for (const AtenArgument& argument : call.arguments) {
            if (!argument.tensors.empty() && argument.tensors[0] != no_tensor) {
                return graph.tensors[argument.tensors[0]].shape.size();
            }
        }
        fail(call, "it reads no tensor");
    }
};

void no_attributes(const Context&) {}

/// One value per spatial dimension: ATen takes a single number for all of them.
Integers per_dimension(const Context& c, std::string_view argument, std::size_t dimensions, const Integers& fallback) {
    const auto given = c.call.integers(argument);
    Integers values(given.begin(), given.end());
    if (values.empty()) values = fallback;
    if (values.size() == 1) values.resize(dimensions, values[0]);
    if (values.size() != dimensions)
        fail(c.call, fmt::format("'{}' has {} values for {} dimensions", argument, values.size(), dimensions));
    return values;
}

void require_at_least(const Context& c, std::string_view argument, const Integers& values, std::int64_t least) {
    for (const std::int64_t value : values) {
        if (value < least) fail(c.call, fmt::format("'{}' must be at least {}, not {}", argument, least, value));
    }
}

void read_conv(const Context& c) {
    const Tensor& weight = required(c.graph, c.call, "weight");
    if (weight.shape.size() < 3) fail(c.call, "the weight needs at least three dimensions");
    const std::size_t dimensions = weight.shape.size() - 2;
    const Integers stride = per_dimension(c, "stride", dimensions, {1});
    const Integers dilation = per_dimension(c, "dilation", dimensions, {1});
    const std::int64_t groups = c.call.integer("groups", 1);
    require_at_least(c, "stride", stride, 1);
    require_at_least(c, "dilation", dilation, 1);
    require_at_least(c, "groups", {groups}, 1);
    const auto out_channels = c.graph.expressions.constant_value(weight.shape[0]);
    if (out_channels && *out_channels % groups != 0)
        fail(c.call, fmt::format("{} groups do not divide {} channels", groups, *out_channels));
    Integers begin(dimensions, 0), end(dimensions, 0);
    const AtenArgument* padding = c.call.find("padding");
    if (padding && padding->text == "same") {
        for (std::size_t i = 0; i < dimensions; ++i) {
            const auto kernel = c.graph.expressions.constant_value(weight.shape[i + 2]);
            const std::int64_t total = dilation[i] * (kernel.value_or(1) - 1);
            begin[i] = total / 2, end[i] = total - total / 2;
        }
    } else if (!padding || padding->text.empty()) {
        begin = end = per_dimension(c, "padding", dimensions, {0});
        require_at_least(c, "padding", begin, 0);
    }
    c.add("stride", stride), c.add("pad_begin", begin), c.add("pad_end", end), c.add("dilation", dilation);
    c.add("groups", groups);
}

void read_pool(const Context& c) {
    const Integers kernel_size(c.call.integers("kernel_size").begin(), c.call.integers("kernel_size").end());
    if (kernel_size.empty()) fail(c.call, "argument 'kernel_size' is missing");
    const std::string_view name = c.call.target;
    const auto dimensions = static_cast<std::size_t>(name[name.find('d', name.find("pool")) - 1] - '0');
    const Integers kernel = per_dimension(c, "kernel_size", dimensions, {});
    const Integers stride = per_dimension(c, "stride", dimensions, kernel);
    const Integers pad = per_dimension(c, "padding", dimensions, {0});
    require_at_least(c, "kernel_size", kernel, 1);
    require_at_least(c, "stride", stride, 1);
    require_at_least(c, "padding", pad, 0);
    c.add("kernel", kernel), c.add("stride", stride), c.add("pad_begin", pad), c.add("pad_end", pad);
}

void read_axis(const Context& c, std::string_view argument, std::int64_t fallback) {
    c.add("axis", axis_of(c.call, c.call.integer(argument, fallback), c.input_rank()));
}
void read_dim(const Context& c) {
    read_axis(c, "dim", -1);
}
void read_first_dim(const Context& c) {
    read_axis(c, "dim", 0);
}
/// Empty vectors may stand before the parts that have the dimension: a cache that holds nothing yet.
void read_joined_dim(const Context& c) {
    const std::size_t rank = std::max(c.input_rank(), first_output(c.graph, c.call).shape.size());
    c.add("axis", axis_of(c.call, c.call.integer("dim", 0), rank));
}
/// What a slice takes of its input, as strides need it.
void read_slice(const Context& c) {
    c.add("axes", Integers{axis_of(c.call, c.call.integer("dim", 0), c.input_rank())});
    c.add("step", Integers{c.call.integer("step", 1)});
}
void read_select(const Context& c) {
    read_first_dim(c);
    c.add("axes", Integers{axis_of(c.call, c.call.integer("dim", 0), c.input_rank())});
}
/// Without dimensions the flattened tensor is rolled.
void read_roll(const Context& c) {
    const auto shifts = c.call.integers("shifts");
    const auto dims = c.call.integers("dims");
    if (dims.empty() || dims.size() != shifts.size()) return;
    Integers axes;
    for (const std::int64_t dim : dims) axes.push_back(axis_of(c.call, dim, c.input_rank()));
    c.add("axes", std::move(axes));
    c.add("shifts", Integers(shifts.begin(), shifts.end()));
}
void read_squeezed(const Context& c) {
    if (c.call.integers("dim").size() == 1) read_dim(c);
}
void read_new_dim(const Context& c) {
    c.add("axis", axis_of(c.call, c.call.integer("dim", 0), c.input_rank() + 1));
}

void read_normalized(const Context& c) {
    const auto count = static_cast<std::int64_t>(c.call.integers("normalized_shape").size());
    const auto rank = static_cast<std::int64_t>(c.input_rank());
    if (count < 1 || count > rank) fail(c.call, fmt::format("'normalized_shape' has {} of {} dimensions", count, rank));
    c.add("axis", rank - count);
}

void read_groups(const Context& c) {
    const std::int64_t groups = c.call.integer("num_groups", c.call.integer("group", 1));
    require_at_least(c, "num_groups", {groups}, 1);
    c.add("groups", groups);
}

void read_reduce(const Context& c) {
    Integers axes;
    for (const std::int64_t axis : c.call.integers("dim")) axes.push_back(axis_of(c.call, axis, c.input_rank()));
    if (axes.empty()) {
        for (std::size_t i = 0; i < c.input_rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
    }
    c.add("axes", axes);
    c.add("keepdims", c.call.integer("keepdim", 0));
}

void read_permute(const Context& c) {
    const auto dims = c.call.integers("dims");
    const std::size_t rank = c.input_rank();
    Integers perm;
    for (const std::int64_t axis : dims) perm.push_back(axis_of(c.call, axis, rank));
    Integers sorted = perm;
    std::sort(sorted.begin(), sorted.end());
    if (perm.size() != rank || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
        fail(c.call, "'dims' is not a permutation");
    }
    c.add("perm", perm);
}

void read_swap(const Context& c, std::int64_t first, std::int64_t second) {
    const std::size_t rank = c.input_rank();
    Integers perm(rank);
    for (std::size_t i = 0; i < rank; ++i) perm[i] = static_cast<std::int64_t>(i);
    if (rank > 1) std::swap(perm[axis_of(c.call, first, rank)], perm[axis_of(c.call, second, rank)]);
    c.add("perm", perm);
}
void read_transpose(const Context& c) {
    const std::int64_t first = c.call.integer("dim0", c.call.integer("axis0", 0));
    read_swap(c, first, c.call.integer("dim1", c.call.integer("axis1", 1)));
}
void read_matrix_transpose(const Context& c) {
    read_swap(c, -2, -1);
}

void read_causal(const Context& c) {
    c.add("causal", c.call.integer("is_causal", 0));
}

void read_recurrent(const Context& c) {
    const std::string_view target = c.call.target;
    const auto is_cell = [&](std::string_view name) { return target.find(name) != std::string_view::npos; };
    c.add("cell", std::string(is_cell("lstm") ? "lstm" : is_cell("gru") ? "gru" : "rnn"));
    const std::int64_t directions = 1 + c.call.integer("bidirectional", 0);
    const auto width = c.graph.expressions.constant_value(first_output(c.graph, c.call).shape.back());
    if (!width) fail(c.call, "the hidden size is symbolic");
    c.add("hidden", *width / directions);
    const std::int64_t layers = c.call.integer("num_layers", 1);
    require_at_least(c, "num_layers", {layers}, 1);
    c.add("layers", layers);
    c.add("directions", directions);
    if (c.call.integer("batch_first", 0) != 0) c.add("batch_first", 1);
    if (c.call.find("batch_sizes") != nullptr) c.add("packed", 1);
}

/// Rows sorted by expert; how many experts each token has the operator does not say.
void read_experts(const Context& c) {
    const auto& arguments = c.call.arguments;
    if (arguments.size() < 2 || arguments[1].tensors.empty() || arguments[1].tensors[0] == no_tensor) {
        fail(c.call, "needs two tensors");
    }
    const std::vector<Expression>& weights = c.graph.tensors[arguments[1].tensors[0]].shape;
    if (weights.size() != 3) return;  // groups of another dimension: a product like any other
    if (const auto experts = c.graph.expressions.constant_value(weights[0])) {
        c.add(std::string(experts_attribute), *experts);
    }
}

/// Maps one ATen operator, in-place variants included, to a canonical one.
struct AtenRow {
    std::string_view name;  ///< without the `_` of the in-place variant
    OpKind kind;
    std::string_view function = {};  ///< attribute "function"; "=" means the operator's own name
    void (*attributes)(const Context&) = no_attributes;
    std::string_view operands = {};  ///< argument names in canonical order; empty: all tensors as they come
};

constexpr std::string_view own_name = "=";
constexpr std::string_view norm_operands = "input weight bias running_mean running_var";
constexpr std::string_view product_with_sum = "mat1 mat2 self";
constexpr std::string_view batched_product_with_sum = "batch1 batch2 self";

// One row per operator, grouped as OpKind is; looked up by name.
const AtenRow table[] = {
    {"conv1d", OpKind::conv, {}, read_conv, "input weight bias"},
    {"conv2d", OpKind::conv, {}, read_conv, "input weight bias"},
    {"conv3d", OpKind::conv, {}, read_conv, "input weight bias"},
    {"convolution", OpKind::conv, {}, read_conv, "input weight bias"},
    {"_convolution", OpKind::conv, {}, read_conv, "input weight bias"},
    {"conv_transpose1d", OpKind::conv_transpose, {}, read_conv, "input weight bias"},
    {"conv_transpose2d", OpKind::conv_transpose, {}, read_conv, "input weight bias"},
    {"conv_transpose3d", OpKind::conv_transpose, {}, read_conv, "input weight bias"},
    {"linear", OpKind::linear, {}, no_attributes, "input weight bias"},
    {"matmul", OpKind::matmul},
    {"mm", OpKind::matmul},
    {"mv", OpKind::matmul},
    {"dot", OpKind::matmul},
    {"bmm", OpKind::matmul},
    {"addmm", OpKind::matmul, {}, no_attributes, product_with_sum},
    {"baddbmm", OpKind::matmul, {}, no_attributes, batched_product_with_sum},
    {"_int_mm", OpKind::matmul},
    {"_grouped_mm", OpKind::matmul, {}, read_experts, "self mat2"},
    // Of transformers, in exported models.
    {"grouped_mm_fallback", OpKind::matmul, {}, read_experts, "input weight"},
    {"scaled_dot_product_attention", OpKind::attention, {}, read_causal, "query key value attn_mask"},
    {"_scaled_dot_product_flash_attention", OpKind::attention, {}, read_causal, "query key value"},
    {"_scaled_dot_product_flash_attention_for_cpu", OpKind::attention, {}, read_causal, "query key value attn_mask"},
    {"_scaled_dot_product_efficient_attention", OpKind::attention, {}, read_causal, "query key value attn_bias"},
    {"_scaled_dot_product_cudnn_attention", OpKind::attention, {}, read_causal, "query key value attn_bias"},
    {"lstm", OpKind::recurrent, {}, read_recurrent},
    {"gru", OpKind::recurrent, {}, read_recurrent},
    {"rnn_tanh", OpKind::recurrent, {}, read_recurrent},
    {"rnn_relu", OpKind::recurrent, {}, read_recurrent},
    {"lstm_cell", OpKind::recurrent, {}, read_recurrent},
    {"gru_cell", OpKind::recurrent, {}, read_recurrent},
    {"rnn_tanh_cell", OpKind::recurrent, {}, read_recurrent},
    {"rnn_relu_cell", OpKind::recurrent, {}, read_recurrent},

    {"batch_norm", OpKind::batch_norm, {}, no_attributes, norm_operands},
    {"native_batch_norm", OpKind::batch_norm, {}, no_attributes, norm_operands},
    {"_native_batch_norm_legit_no_training", OpKind::batch_norm, {}, no_attributes, norm_operands},
    {"cudnn_batch_norm", OpKind::batch_norm, {}, no_attributes, norm_operands},
    {"instance_norm", OpKind::instance_norm, {}, no_attributes, norm_operands},
    {"layer_norm", OpKind::layer_norm, {}, read_normalized, "input weight bias"},
    {"native_layer_norm", OpKind::layer_norm, {}, read_normalized, "input weight bias"},
    {"rms_norm", OpKind::rms_norm, {}, read_normalized, "input weight"},
    {"_fused_rms_norm", OpKind::rms_norm, {}, read_normalized, "input weight"},
    {"group_norm", OpKind::group_norm, {}, read_groups, "input weight bias"},
    {"native_group_norm", OpKind::group_norm, {}, read_groups, "input weight bias"},
    {"softmax", OpKind::softmax, {}, read_dim},
    {"_softmax", OpKind::softmax, {}, read_dim},
    {"_safe_softmax", OpKind::softmax, {}, read_dim},
    {"log_softmax", OpKind::log_softmax, {}, read_dim},
    {"_log_softmax", OpKind::log_softmax, {}, read_dim},

    {"abs", OpKind::pointwise, own_name},
    {"acos", OpKind::pointwise, own_name},
    {"add", OpKind::pointwise, own_name},
    {"addcdiv", OpKind::pointwise, own_name},
    {"addcmul", OpKind::pointwise, own_name},
    {"angle", OpKind::pointwise, own_name},
    {"asin", OpKind::pointwise, own_name},
    {"atan", OpKind::pointwise, own_name},
    {"atan2", OpKind::pointwise, own_name},
    {"bitwise_and", OpKind::pointwise, own_name},
    {"bitwise_left_shift", OpKind::pointwise, own_name},
    {"bitwise_not", OpKind::pointwise, own_name},
    {"bitwise_or", OpKind::pointwise, own_name},
    {"bitwise_right_shift", OpKind::pointwise, own_name},
    {"bitwise_xor", OpKind::pointwise, own_name},
    {"ceil", OpKind::pointwise, own_name},
    {"celu", OpKind::pointwise, own_name},
    {"clamp", OpKind::pointwise, own_name},
    {"clamp_max", OpKind::pointwise, "clamp"},
    {"clamp_min", OpKind::pointwise, "clamp"},
    {"clip", OpKind::pointwise, "clamp"},
    {"complex", OpKind::pointwise, own_name},
    {"copysign", OpKind::pointwise, own_name},
    {"cos", OpKind::pointwise, own_name},
    {"cosh", OpKind::pointwise, own_name},
    {"diff", OpKind::pointwise, "sub"},
    {"div", OpKind::pointwise, own_name},
    {"divide", OpKind::pointwise, "div"},
    {"elu", OpKind::pointwise, own_name},
    {"eq", OpKind::pointwise, "equal"},
    {"erf", OpKind::pointwise, own_name},
    {"erfinv", OpKind::pointwise, own_name},
    {"exp", OpKind::pointwise, own_name},
    {"expm1", OpKind::pointwise, own_name},
    {"floor", OpKind::pointwise, own_name},
    {"floor_divide", OpKind::pointwise, own_name},
    {"fmod", OpKind::pointwise, "mod"},
    {"frac", OpKind::pointwise, own_name},
    {"ge", OpKind::pointwise, "greater_or_equal"},
    {"gelu", OpKind::pointwise, own_name},
    {"greater", OpKind::pointwise, own_name},
    {"gt", OpKind::pointwise, "greater"},
    {"hardshrink", OpKind::pointwise, own_name},
    {"hardsigmoid", OpKind::pointwise, own_name},
    {"hardswish", OpKind::pointwise, own_name},
    {"hardtanh", OpKind::pointwise, "clamp"},
    {"heaviside", OpKind::pointwise, own_name},
    {"isfinite", OpKind::pointwise, own_name},
    {"isinf", OpKind::pointwise, own_name},
    {"isnan", OpKind::pointwise, own_name},
    {"le", OpKind::pointwise, "less_or_equal"},
    {"leaky_relu", OpKind::pointwise, own_name},
    {"ldexp", OpKind::pointwise, own_name},
    {"lerp", OpKind::pointwise, own_name},
    {"log", OpKind::pointwise, own_name},
    {"log10", OpKind::pointwise, own_name},
    {"log1p", OpKind::pointwise, own_name},
    {"log2", OpKind::pointwise, own_name},
    {"log_sigmoid", OpKind::pointwise, own_name},
    {"logaddexp", OpKind::pointwise, own_name},
    {"logical_and", OpKind::pointwise, "and"},
    {"logical_not", OpKind::pointwise, "not"},
    {"logical_or", OpKind::pointwise, "or"},
    {"logical_xor", OpKind::pointwise, "xor"},
    {"logit", OpKind::pointwise, own_name},
    {"lt", OpKind::pointwise, "less"},
    {"masked_fill", OpKind::pointwise, "where"},
    {"maximum", OpKind::pointwise, "max"},
    {"minimum", OpKind::pointwise, "min"},
    {"mish", OpKind::pointwise, own_name},
    {"mul", OpKind::pointwise, own_name},
    {"multiply", OpKind::pointwise, "mul"},
    {"nan_to_num", OpKind::pointwise, own_name},
    {"ne", OpKind::pointwise, "not_equal"},
    {"neg", OpKind::pointwise, own_name},
    {"outer", OpKind::pointwise, "mul"},
    {"polar", OpKind::pointwise, own_name},
    {"pow", OpKind::pointwise, own_name},
    {"prelu", OpKind::pointwise, own_name},
    {"_prelu_kernel", OpKind::pointwise, "prelu"},
    {"reciprocal", OpKind::pointwise, own_name},
    {"relu", OpKind::pointwise, own_name},
    {"relu6", OpKind::pointwise, own_name},
    {"remainder", OpKind::pointwise, "mod"},
    {"round", OpKind::pointwise, own_name},
    {"rrelu", OpKind::pointwise, own_name},
    {"rsqrt", OpKind::pointwise, own_name},
    {"rsub", OpKind::pointwise, "sub"},
    {"selu", OpKind::pointwise, own_name},
    {"sigmoid", OpKind::pointwise, own_name},
    {"sign", OpKind::pointwise, own_name},
    {"silu", OpKind::pointwise, own_name},
    {"sin", OpKind::pointwise, own_name},
    {"sinc", OpKind::pointwise, own_name},
    {"sinh", OpKind::pointwise, own_name},
    {"softplus", OpKind::pointwise, own_name},
    {"softshrink", OpKind::pointwise, own_name},
    {"special_expm1", OpKind::pointwise, "expm1"},
    {"sqrt", OpKind::pointwise, own_name},
    {"square", OpKind::pointwise, own_name},
    {"sub", OpKind::pointwise, own_name},
    {"subtract", OpKind::pointwise, "sub"},
    {"tan", OpKind::pointwise, own_name},
    {"tanh", OpKind::pointwise, own_name},
    {"threshold", OpKind::pointwise, own_name},
    {"tril", OpKind::pointwise, own_name},
    {"triu", OpKind::pointwise, own_name},
    {"true_divide", OpKind::pointwise, "div"},
    {"trunc", OpKind::pointwise, own_name},
    {"where", OpKind::pointwise, own_name},
    {"xlogy", OpKind::pointwise, own_name},
    {"__and__", OpKind::pointwise, "and"},
    {"__lshift__", OpKind::pointwise, "bitwise_left_shift"},
    {"__or__", OpKind::pointwise, "or"},
    {"__rshift__", OpKind::pointwise, "bitwise_right_shift"},
    {"__xor__", OpKind::pointwise, "xor"},
    {"glu", OpKind::pointwise, own_name},
    {"to", OpKind::cast},
    {"_to_copy", OpKind::cast},
    {"type_as", OpKind::cast},
    {"convert_element_type", OpKind::cast},

    {"all", OpKind::reduce, own_name, read_reduce},
    {"amax", OpKind::reduce, "max", read_reduce},
    {"amin", OpKind::reduce, "min", read_reduce},
    {"any", OpKind::reduce, own_name, read_reduce},
    {"argmax", OpKind::reduce, own_name, read_reduce},
    {"argmin", OpKind::reduce, own_name, read_reduce},
    {"bincount", OpKind::reduce, own_name},
    {"cosine_similarity", OpKind::reduce, own_name},
    {"frobenius_norm", OpKind::reduce, "norm", read_reduce},
    {"histc", OpKind::reduce, own_name},
    {"linalg_vector_norm", OpKind::reduce, "norm", read_reduce},
    {"logsumexp", OpKind::reduce, own_name, read_reduce},
    {"max", OpKind::reduce, own_name, read_reduce},
    {"mean", OpKind::reduce, own_name, read_reduce},
    {"median", OpKind::reduce, own_name, read_reduce},
    {"min", OpKind::reduce, own_name, read_reduce},
    {"norm", OpKind::reduce, own_name, read_reduce},
    {"prod", OpKind::reduce, own_name, read_reduce},
    {"std", OpKind::reduce, own_name, read_reduce},
    {"std_mean", OpKind::reduce, own_name, read_reduce},
    {"sum", OpKind::reduce, own_name, read_reduce},
    {"var", OpKind::reduce, own_name, read_reduce},
    {"var_mean", OpKind::reduce, own_name, read_reduce},
    {"_weight_norm", OpKind::reduce, "weight_norm"},
    {"_weight_norm_interface", OpKind::reduce, "weight_norm"},
    {"cumprod", OpKind::cumulative, own_name, read_dim},
    {"cumsum", OpKind::cumulative, own_name, read_dim},
    {"logcumsumexp", OpKind::cumulative, own_name, read_dim},
    {"argsort", OpKind::sort, "sort", read_dim},
    {"searchsorted", OpKind::sort, own_name},
    {"bucketize", OpKind::sort, own_name},
    {"sort", OpKind::sort, own_name, read_dim},
    {"topk", OpKind::sort, own_name, read_dim},

    {"avg_pool1d", OpKind::pool, "average", read_pool},
    {"avg_pool2d", OpKind::pool, "average", read_pool},
    {"avg_pool3d", OpKind::pool, "average", read_pool},
    {"max_pool1d", OpKind::pool, "max", read_pool},
    {"max_pool2d", OpKind::pool, "max", read_pool},
    {"max_pool3d", OpKind::pool, "max", read_pool},
    {"max_pool1d_with_indices", OpKind::pool, "max", read_pool},
    {"max_pool2d_with_indices", OpKind::pool, "max", read_pool},
    {"max_pool3d_with_indices", OpKind::pool, "max", read_pool},
    {"adaptive_avg_pool1d", OpKind::global_pool, "average"},
    {"adaptive_avg_pool2d", OpKind::global_pool, "average"},
    {"adaptive_avg_pool3d", OpKind::global_pool, "average"},
    {"_adaptive_avg_pool2d", OpKind::global_pool, "average"},
    {"_adaptive_avg_pool3d", OpKind::global_pool, "average"},
    {"adaptive_max_pool1d", OpKind::global_pool, "max"},
    {"adaptive_max_pool2d", OpKind::global_pool, "max"},
    {"adaptive_max_pool3d", OpKind::global_pool, "max"},
    {"upsample_nearest1d", OpKind::resize, "nearest"},
    {"upsample_nearest2d", OpKind::resize, "nearest"},
    {"upsample_nearest3d", OpKind::resize, "nearest"},
    {"_upsample_nearest_exact2d", OpKind::resize, "nearest"},
    {"upsample_linear1d", OpKind::resize, "linear"},
    {"upsample_bilinear2d", OpKind::resize, "bilinear"},
    {"_upsample_bilinear2d_aa", OpKind::resize, "bilinear"},
    {"upsample_trilinear3d", OpKind::resize, "trilinear"},
    {"upsample_bicubic2d", OpKind::resize, "bicubic"},
    {"_upsample_bicubic2d_aa", OpKind::resize, "bicubic"},
    {"grid_sampler", OpKind::resize, "grid_sample"},
    {"grid_sampler_2d", OpKind::resize, "grid_sample"},

    {"embedding", OpKind::embedding, {}, no_attributes, "weight indices"},
    {"embedding_bag", OpKind::embedding, {}, no_attributes, "weight indices"},
    {"gather", OpKind::gather},
    {"index", OpKind::gather},
    {"index_select", OpKind::gather},
    {"_unsafe_index", OpKind::gather},
    {"take", OpKind::gather},
    {"take_along_dim", OpKind::gather},
    {"masked_select", OpKind::gather},
    {"index_add", OpKind::scatter},
    {"index_copy", OpKind::scatter},
    {"index_fill", OpKind::scatter},
    {"index_put", OpKind::scatter},
    {"_index_put_impl", OpKind::scatter},
    {"_unsafe_index_put", OpKind::scatter},
    {"masked_scatter", OpKind::scatter},
    {"scatter", OpKind::scatter},
    {"scatter_add", OpKind::scatter},
    {"scatter_reduce", OpKind::scatter},
    {"select_scatter", OpKind::scatter},
    {"slice_scatter", OpKind::scatter},

    {"_reshape_alias", OpKind::reshape},
    {"_unsafe_view", OpKind::reshape},
    {"flatten", OpKind::reshape},
    {"imag", OpKind::reshape},
    {"ravel", OpKind::reshape},
    {"real", OpKind::reshape},
    {"reshape", OpKind::reshape},
    {"reshape_as", OpKind::reshape},
    {"squeeze", OpKind::reshape, {}, read_squeezed},
    {"unflatten", OpKind::reshape},
    {"unsqueeze", OpKind::reshape, {}, read_new_dim},
    {"view", OpKind::reshape},
    {"view_as", OpKind::reshape},
    {"view_as_complex", OpKind::reshape},
    {"view_as_real", OpKind::reshape},
    {"_conj", OpKind::reshape},
    {"conj", OpKind::reshape},
    {"adjoint", OpKind::transpose, {}, read_matrix_transpose},
    {"mT", OpKind::transpose, {}, read_matrix_transpose},
    {"movedim", OpKind::transpose},
    {"moveaxis", OpKind::transpose},
    {"numpy_T", OpKind::transpose},
    {"permute", OpKind::transpose, {}, read_permute},
    {"swapaxes", OpKind::transpose, {}, read_transpose},
    {"swapdims", OpKind::transpose, {}, read_transpose},
    {"t", OpKind::transpose, {}, read_matrix_transpose},
    {"transpose", OpKind::transpose, {}, read_transpose},
    {"as_strided", OpKind::slice},
    {"diagonal", OpKind::slice},
    {"narrow", OpKind::slice, {}, read_slice},
    {"select", OpKind::slice, {}, read_select},
    {"slice", OpKind::slice, {}, read_slice},
    {"unfold", OpKind::slice},
    {"chunk", OpKind::split, {}, read_first_dim},
    {"hsplit", OpKind::split},
    {"split", OpKind::split, {}, read_first_dim},
    {"split_with_sizes", OpKind::split, {}, read_first_dim},
    {"tensor_split", OpKind::split, {}, read_first_dim},
    {"unbind", OpKind::split, {}, read_first_dim},
    {"unsafe_chunk", OpKind::split, {}, read_first_dim},
    {"unsafe_split", OpKind::split, {}, read_first_dim},
    {"broadcast_tensors", OpKind::expand},
    {"broadcast_to", OpKind::expand},
    {"expand", OpKind::expand},
    {"expand_as", OpKind::expand},
    {"meshgrid", OpKind::expand},

    {"cat", OpKind::concat, {}, read_joined_dim},
    {"concat", OpKind::concat, {}, read_joined_dim},
    {"concatenate", OpKind::concat, {}, read_joined_dim},
    {"hstack", OpKind::concat},
    {"stack", OpKind::concat, {}, read_new_dim},
    {"vstack", OpKind::concat},
    {"constant_pad_nd", OpKind::pad},
    {"pad", OpKind::pad},
    {"reflection_pad1d", OpKind::pad},
    {"reflection_pad2d", OpKind::pad},
    {"replication_pad1d", OpKind::pad},
    {"replication_pad2d", OpKind::pad},
    {"replication_pad3d", OpKind::pad},
    {"channel_shuffle", OpKind::copy},
    {"clone", OpKind::copy},
    {"col2im", OpKind::copy},
    {"contiguous", OpKind::copy},
    {"copy", OpKind::copy},
    {"diag_embed", OpKind::copy},
    {"flip", OpKind::copy},
    {"im2col", OpKind::copy},
    {"lift_fresh_copy", OpKind::copy},
    {"one_hot", OpKind::copy},
    {"pixel_shuffle", OpKind::copy},
    {"pixel_unshuffle", OpKind::copy},
    {"repeat", OpKind::copy},
    {"repeat_interleave", OpKind::copy},
    {"resolve_conj", OpKind::identity},
    {"resolve_neg", OpKind::identity},
    {"roll", OpKind::copy, {}, read_roll},
    {"rot90", OpKind::copy},
    {"tile", OpKind::copy},
    {"arange", OpKind::fill},
    {"bernoulli", OpKind::fill},
    {"eye", OpKind::fill},
    {"fill", OpKind::fill},
    {"full", OpKind::fill},
    {"full_like", OpKind::fill},
    {"linspace", OpKind::fill},
    {"new_full", OpKind::fill},
    {"new_ones", OpKind::fill},
    {"new_zeros", OpKind::fill},
    {"normal", OpKind::fill},
    {"ones", OpKind::fill},
    {"ones_like", OpKind::fill},
    {"rand", OpKind::fill},
    {"rand_like", OpKind::fill},
    {"randint", OpKind::fill},
    {"randn", OpKind::fill},
    {"randn_like", OpKind::fill},
    {"scalar_tensor", OpKind::fill},
    {"tril_indices", OpKind::fill},
    {"triu_indices", OpKind::fill},
    {"uniform", OpKind::fill},
    {"hann_window", OpKind::fill},
    {"zero", OpKind::fill},
    {"zeros", OpKind::fill},
    {"zeros_like", OpKind::fill},

    {"fft_fft", OpKind::fft},
    {"fft_fft2", OpKind::fft},
    {"fft_fftn", OpKind::fft},
    {"fft_ifft", OpKind::fft},
    {"fft_ifft2", OpKind::fft},
    {"fft_ifftn", OpKind::fft},
    {"fft_irfft", OpKind::fft},
    {"fft_irfft2", OpKind::fft},
    {"fft_rfft", OpKind::fft},
    {"fft_rfft2", OpKind::fft},
    {"fft_rfftn", OpKind::fft},
    {"stft", OpKind::fft},
    {"_fft_c2c", OpKind::fft},
    {"_fft_c2r", OpKind::fft},
    {"_fft_r2c", OpKind::fft},
    {"fake_quantize_per_channel_affine", OpKind::quantize},
    {"fake_quantize_per_tensor_affine", OpKind::quantize},
    {"quantize_per_channel", OpKind::quantize},
    {"quantize_per_tensor", OpKind::quantize},
    {"dequantize", OpKind::dequantize},
    {"dequantize_per_channel", OpKind::dequantize},
    {"dequantize_per_tensor", OpKind::dequantize},
    {"nonzero", OpKind::nonzero},
    {"nonzero_numpy", OpKind::nonzero},
    {"unique_consecutive", OpKind::nonzero},
    {"unique_dim", OpKind::nonzero},
    {"_unique2", OpKind::nonzero},
    {"_local_scalar_dense", OpKind::to_host},
    {"equal", OpKind::to_host},
    {"item", OpKind::to_host},

    {"empty", OpKind::shape},
    {"empty_like", OpKind::shape},
    {"empty_permuted", OpKind::shape},
    {"empty_strided", OpKind::shape},
    {"new_empty", OpKind::shape},
    {"new_empty_strided", OpKind::shape},
    {"alias", OpKind::identity},
    {"alpha_dropout", OpKind::identity},
    {"detach", OpKind::identity},
    {"dropout", OpKind::identity},
    {"feature_dropout", OpKind::identity},
    {"lift_fresh", OpKind::identity},
    {"native_dropout", OpKind::identity},
    {"requires_grad", OpKind::identity},

    {"deform_conv2d", OpKind::conv, {}, no_attributes, "input weight bias offset mask"},
    {"roi_align", OpKind::gather},
    {"nms", OpKind::nonzero},
};

const AtenRow* find_row(std::string_view target) {
    if (!is_of_known_library(target)) return nullptr;
    static const auto rows = [] {
        std::map<std::string_view, const AtenRow*, std::less<>> result;
        for (const AtenRow& row : table) result.emplace(row.name, &row);
        return result;
    }();
    const std::string_view name = target.substr(target.rfind(':') + 1);
    auto found = rows.find(name);
    if (found == rows.end() && name.ends_with('_')) found = rows.find(name.substr(0, name.size() - 1));
    return found == rows.end() ? nullptr : found->second;
}

std::vector<TensorId> operands(const AtenCall& call, const AtenRow* row) {
    std::vector<TensorId> result;
    if (!row || row->operands.empty()) {
        for (const AtenArgument& argument : call.arguments) {
            for (const TensorId tensor : argument.tensors) {
                if (tensor != no_tensor) result.push_back(tensor);
            }
        }
        return result;
    }
    for (std::string_view rest = row->operands; !rest.empty();) {
        const std::size_t space = rest.find(' ');
        result.push_back(call.tensor(rest.substr(0, space)));
        rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
    }
    while (!result.empty() && result.back() == no_tensor) result.pop_back();
    return result;
}

void append(Graph& graph, const AtenCall& call, OpKind kind, std::vector<TensorId> inputs,
            std::vector<TensorId> outputs, std::vector<Attribute> attributes = {}) {
    const auto id = static_cast<OpId>(graph.ops.size());
    for (const TensorId output : outputs) graph.tensors[output].producer = id;
    const bool continues = !graph.ops.empty() && (graph.ops.back().name + '.').starts_with(call.name + '.');
    std::string name = continues ? fmt::format("{}.{}", call.name, id) : call.name;
    graph.ops.push_back({kind, std::move(name), call.target, call.module, std::move(inputs), std::move(outputs),
                         std::move(attributes)});
}

/// Appends a tensor that the file does not name, e.g. between the steps of an einsum.
TensorId intermediate(Graph& graph, const AtenCall& call, DType dtype, std::vector<Expression> shape,
                      std::vector<Expression> strides = {}) {
    graph.tensors.push_back({fmt::format("{}.{}", call.name, graph.tensors.size()), dtype, TensorRole::activation, true,
                             std::move(shape), std::move(strides), no_op});
    return static_cast<TensorId>(graph.tensors.size() - 1);
}

/// Strides of a tensor in elements, spelled out.
std::vector<Expression> strides_of(ExpressionPool& pool, const Tensor& tensor) {
    if (!tensor.strides.empty()) return tensor.strides;
    std::vector<Expression> strides(tensor.shape.size());
    Expression step = pool.constant(1);
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
        strides[i] = step;
        step = pool.multiply(step, tensor.shape[i]);
    }
    return strides;
}

/// torch.einsum: of one operand, what the result leaves out is summed and the rest permuted. Two are permuted to
/// [shared…, own…, summed…], folded to batches of matrices, multiplied, unfolded and permuted to the order asked for.
/// Source: aten/src/ATen/native/Linear.cpp, einsum and sumproduct_pair.
class Einsum {
  public:
    Einsum(Graph& graph, const AtenCall& call) : graph_(graph), call_(call), pool_(graph.expressions) {}

    /// Returns false for equations outside this form (three operands, no arrow, a letter twice in one operand).
    bool append() {
        const AtenArgument* equation = call_.find("equation");
        const AtenArgument* tensors = call_.find("tensors");
        if (!equation || !tensors || call_.outputs.size() != 1) return false;
        std::string text = equation->text;
        std::erase(text, ' ');
        if (!spell_out_ellipsis(text, tensors->tensors)) return false;
        if (tensors->tensors.size() == 1) return append_permutation(tensors->tensors[0], text);
        return tensors->tensors.size() == 2 && append_product(tensors->tensors[0], tensors->tensors[1], text);
    }

    /// torch.tensordot: the dimensions that it names are summed, those of the first operand come first in the result.
    bool append_tensordot() {
        const TensorId a = call_.tensor("self"), b = call_.tensor("other");
        const auto dims_a = call_.integers("dims_self"), dims_b = call_.integers("dims_other");
        if (a == no_tensor || b == no_tensor || dims_a.size() != dims_b.size()) return false;
        const auto rank = [&](TensorId id) { return graph_.tensors[id].shape.size(); };
        if (rank(a) + rank(b) > 26) return false;
        std::string left(rank(a), ' '), right(rank(b), ' ');
        char next = 'a';
        for (std::size_t i = 0; i < dims_a.size(); ++i) {
            left.at(axis_of(call_, dims_a[i], rank(a))) = right.at(axis_of(call_, dims_b[i], rank(b))) = next++;
        }
        std::string kept;
        for (std::string* letters : {&left, &right}) {
            for (char& letter : *letters) {
                if (letter == ' ') kept += letter = next++;
            }
        }
        return append_product(a, b, left + ',' + right + "->" + kept);
    }

  private:
    /// "..." stands for as many dimensions as its operand has beyond its letters: A, B, … where none of these is in
    /// use.
    bool spell_out_ellipsis(std::string& text, const std::vector<TensorId>& operands) const {
        if (text.find("...") == std::string::npos) return true;
        std::size_t start = 0, covered = 0;
        for (const TensorId operand : operands) {
            const std::string term = text.substr(start, text.find_first_of(",-", start) - start);
            start += term.size() + 1;
            if (term.find("...") == std::string::npos) continue;
            const std::size_t rank = operand == no_tensor ? 0 : graph_.tensors[operand].shape.size();
            const std::size_t beyond = rank + 3 < term.size() ? 0 : rank + 3 - term.size();
            if (covered != 0 && covered != beyond) return false;  // broadcast over different ranks
            covered = beyond;
        }
        std::string letters;
        for (char letter = 'A'; letters.size() < covered; ++letter) {
            if (letter > 'Z' || has(text, letter)) return false;
            letters += letter;
        }
        for (std::size_t at = 0; (at = text.find("...", at)) != std::string::npos;) text.replace(at, 3, letters);
        return true;
    }

    bool append_permutation(TensorId operand, const std::string& text) {
        const std::size_t arrow = text.find("->");
        if (arrow == std::string::npos) return false;
        std::string from = text.substr(0, arrow);
        const std::string to = text.substr(arrow + 2);
        if (!read_letters(from, operand)) return false;
        Integers summed;
        std::string kept;
        for (std::size_t i = 0; i < from.size(); ++i) {
            if (has(to, from[i])) {
                kept += from[i];
            } else {
                summed.push_back(static_cast<std::int64_t>(i));
            }
        }
        if (kept.size() != to.size() || !std::is_permutation(kept.begin(), kept.end(), to.begin())) return false;
        if (!summed.empty()) {
            const DType dtype = graph_.tensors[operand].dtype;
            const TensorId sum = kept == to ? call_.outputs[0] : intermediate(graph_, call_, dtype, sizes(kept));
            ftax::append(graph_, call_, OpKind::reduce, {operand}, {sum},
                         {{"function", std::string("sum")}, {"axes", summed}, {"keepdims", std::int64_t{0}}});
            operand = sum;
        }
        if (summed.empty() || kept != to) {
            ftax::append(graph_, call_, OpKind::transpose, {operand}, {call_.outputs[0]}, {{"perm", order(kept, to)}});
        }
        return true;
    }

    bool append_product(TensorId a, TensorId b, std::string text) {
        if (call_.outputs.size() != 1) return false;
        const std::size_t comma = text.find(','), arrow = text.find("->");
        if (comma == std::string::npos || arrow == std::string::npos || arrow < comma) return false;
        a_ = text.substr(0, comma), b_ = text.substr(comma + 1, arrow - comma - 1), out_ = text.substr(arrow + 2);
        a_id_ = a, b_id_ = b;
        if (!read_letters(a_, a_id_) || !read_letters(b_, b_id_)) return false;
        std::string shared, own_a, own_b, summed;
        for (const char letter : a_) (has(b_, letter) ? has(out_, letter) ? shared : summed : own_a) += letter;
        for (const char letter : b_) own_b += has(a_, letter) ? "" : std::string(1, letter);
        std::string result = shared + own_a + own_b;
        if (!std::is_permutation(result.begin(), result.end(), out_.begin(), out_.end())) return false;

        const TensorId left = fold(permute(a_id_, a_, shared + own_a + summed), {shared, own_a, summed});
        const TensorId right = fold(permute(b_id_, b_, shared + summed + own_b), {shared, summed, own_b});
        const DType dtype = graph_.tensors[call_.outputs[0]].dtype;
        const TensorId product = intermediate(graph_, call_, dtype, {size(shared), size(own_a), size(own_b)});
        ftax::append(graph_, call_, OpKind::matmul, {left, right}, {product});
        if (result == out_) {
            ftax::append(graph_, call_, OpKind::reshape, {product}, {call_.outputs[0]});
            return true;
        }
        const TensorId unfolded = intermediate(graph_, call_, dtype, sizes(result));
        ftax::append(graph_, call_, OpKind::reshape, {product}, {unfolded});
        ftax::append(graph_, call_, OpKind::transpose, {unfolded}, {call_.outputs[0]}, {{"perm", order(result, out_)}});
        return true;
    }

    static bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

    bool read_letters(const std::string& letters, TensorId id) {
        if (id == no_tensor || letters.size() != graph_.tensors[id].shape.size()) return false;
        for (std::size_t i = 0; i < letters.size(); ++i) {
            if (letters[i] == '.' || letters.find(letters[i], i + 1) != std::string::npos) return false;
            sizes_[letters[i]] = graph_.tensors[id].shape[i];
        }
        return true;
    }

    std::vector<Expression> sizes(const std::string& letters) const {
        std::vector<Expression> result;
        for (const char letter : letters) result.push_back(sizes_.at(letter));
        return result;
    }

    Expression size(const std::string& letters) {
        Expression product = pool_.constant(1);
        for (const char letter : letters) product = pool_.multiply(product, sizes_.at(letter));
        return product;
    }

    static Integers order(const std::string& from, const std::string& to) {
        Integers perm;
        for (const char letter : to) perm.push_back(static_cast<std::int64_t>(from.find(letter)));
        return perm;
    }

    TensorId permute(TensorId id, const std::string& from, const std::string& to) {
        if (from == to) return id;
        const Integers perm = order(from, to);
        const std::vector<Expression> old_strides = strides_of(pool_, graph_.tensors[id]);
        std::vector<Expression> strides;
        for (const std::int64_t axis : perm) strides.push_back(old_strides[static_cast<std::size_t>(axis)]);
        const TensorId result = intermediate(graph_, call_, graph_.tensors[id].dtype, sizes(to), std::move(strides));
        ftax::append(graph_, call_, OpKind::transpose, {id}, {result}, {{"perm", perm}});
        return result;
    }

    TensorId fold(TensorId id, const std::array<std::string, 3>& parts) {
        const TensorId result =
            intermediate(graph_, call_, graph_.tensors[id].dtype, {size(parts[0]), size(parts[1]), size(parts[2])});
        ftax::append(graph_, call_, OpKind::reshape, {id}, {result});
        return result;
    }

    Graph& graph_;
    const AtenCall& call_;
    ExpressionPool& pool_;
    std::string a_, b_, out_;
    TensorId a_id_ = no_tensor, b_id_ = no_tensor;
    std::map<char, Expression> sizes_;
};

/// The fast path of nn.MultiheadAttention without gradients: one product for queries, keys and values, fused attention
/// on views of it, one product for the result. Source: aten/src/ATen/native/transformers/cuda/attention.cu,
/// native_multi_head_attention_cuda. Returns false where the operands do not fit this form.
bool append_native_attention(Graph& graph, const AtenCall& call) {
    const TensorId query = call.tensor("query"), qkv_weight = call.tensor("qkv_weight");
    const TensorId qkv_bias = call.tensor("qkv_bias"), weight = call.tensor("proj_weight");
    const std::int64_t heads = call.integer("num_head", 0), width = call.integer("embed_dim", 0);
    if (query == no_tensor || qkv_weight == no_tensor || weight == no_tensor || heads < 1 || width < heads)
        return false;
    if (call.outputs.empty() || query != call.tensor("key") || query != call.tensor("value")) return false;
    const std::vector<Expression> shape = graph.tensors[query].shape;
    if (!graph.tensors[query].known_shape || shape.size() != 3) return false;
    ExpressionPool& pool = graph.expressions;
    const DType dtype = graph.tensors[query].dtype;
    const Expression h = pool.constant(heads), d = pool.constant(width / heads),
                     packed_width = pool.constant(3 * width);
    const TensorId packed = intermediate(graph, call, dtype, {shape[0], shape[1], packed_width});
    append(graph, call, OpKind::linear, {query, qkv_weight, qkv_bias}, {packed});
    std::vector<TensorId> parts;
    const std::vector<Expression> strides = {pool.multiply(shape[1], packed_width), d, packed_width, pool.constant(1)};
    for (int i = 0; i < 3; ++i) parts.push_back(intermediate(graph, call, dtype, {shape[0], h, shape[1], d}, strides));
    append(graph, call, OpKind::split, {packed}, parts, {{"axis", std::int64_t{2}}});
    const TensorId context = intermediate(graph, call, dtype, {shape[0], h, shape[1], d});
    append(graph, call, OpKind::attention, parts, {context}, {{"causal", std::int64_t{0}}});
    const TensorId joined = intermediate(graph, call, dtype, shape);
    append(graph, call, OpKind::reshape, {context}, {joined});
    append(graph, call, OpKind::linear, {joined, weight, call.tensor("proj_bias")}, {call.outputs[0]});
    return true;
}

/// Indexing with a mask first asks the device how many elements are set, and the host waits for the answer.
void append_mask_lookup(Graph& graph, const AtenCall& call) {
    const AtenArgument* indices = call.find("indices");
    if (!indices) return;
    for (const TensorId index : indices->tensors) {
        if (index == no_tensor || graph.tensors[index].dtype != DType::boolean) continue;
        const Tensor& mask = graph.tensors[index];
        const TensorId positions = intermediate(graph, call, DType::i64, mask.shape);
        append(graph, call, OpKind::nonzero, {index}, {positions});
    }
}

bool is_weight_matrix(const Graph& graph, TensorId id) {
    return id != no_tensor && graph.tensors[id].role == TensorRole::weight && graph.tensors[id].shape.size() == 2;
}

bool is_vector(const Graph& graph, TensorId id) {
    return id != no_tensor && graph.tensors[id].shape.size() == 1;
}

/// The kind of a call where it depends on its arguments and not only on the operator's name.
OpKind refined_kind(const Graph& graph, const AtenCall& call, const AtenRow& row, const std::vector<TensorId>& inputs) {
    const auto name = row.name;
    if (row.kind == OpKind::cast && inputs.size() <= 2 && !inputs.empty() && !call.outputs.empty() &&
        graph.tensors[inputs[0]].dtype == graph.tensors[call.outputs[0]].dtype && name != "_to_copy") {
        return OpKind::identity;  // .to() of what it already is
    }
    // What nn.Linear calls for two dimensions, and what layers call that keep their weight as [k, n].
    if (name == "addmm" && inputs.size() == 3 && is_weight_matrix(graph, inputs[1]) && is_vector(graph, inputs[2]))
        return OpKind::linear;
    if ((name == "max" || name == "min") && inputs.size() == 2) return OpKind::pointwise;
    // torch.export writes a number of Python that is assigned or computed with as a copy of a tensor without
    // dimensions.
    if (name == "lift_fresh_copy" && !call.outputs.empty() && graph.tensors[call.outputs[0]].shape.empty())
        return OpKind::identity;
    if (row.kind == OpKind::pointwise && inputs.empty()) return OpKind::shape;  // numbers on the host
    if (row.kind == OpKind::identity && call.integer("train", 0) != 0) return OpKind::pointwise;
    if (row.kind == OpKind::to_host && inputs.empty()) return OpKind::shape;
    return row.kind;
}

/// Later stages index the operands of these kinds without looking.
void check_operands(const AtenCall& call, OpKind kind, const std::vector<TensorId>& inputs) {
    std::size_t needed = 0;
    switch (kind) {
        case OpKind::conv:
        case OpKind::conv_transpose:
        case OpKind::linear:
        case OpKind::matmul:
        case OpKind::embedding:
            needed = 2;
            break;
        case OpKind::attention:
            needed = 3;
            break;
        case OpKind::fill:
        case OpKind::shape:
        case OpKind::control:
        case OpKind::custom:
            break;
        default:
            needed = 1;
    }
    const auto present = std::find(inputs.begin(), inputs.end(), no_tensor) - inputs.begin();
    if (static_cast<std::size_t>(present) < needed)
        fail(call, fmt::format("needs {} input tensors, has {}", needed, present));
    if (needed > 0 && call.outputs.empty() && kind != OpKind::to_host) fail(call, "it has no output");
}

/// The number that a tensor is combined with: passes recognise functions that a model spells out by their constants.
void note_scalar_operand(const AtenCall& call, const std::vector<TensorId>& inputs,
                         std::vector<Attribute>& attributes) {
    if (inputs.size() != 1) return;
    const AtenArgument* other = call.find("other");
    if (!other) other = call.find("exponent");
    if (!other) return;
    if (other->number) {
        attributes.push_back({"scalar", *other->number});
    } else if (other->integers.size() == 1) {
        attributes.push_back({"scalar", static_cast<double>(other->integers[0])});
    }
}

}  // namespace

const AtenArgument* AtenCall::find(std::string_view argument) const {
    const auto found =
        std::find_if(arguments.begin(), arguments.end(), [&](const auto& a) { return a.name == argument; });
    return found == arguments.end() ? nullptr : &*found;
}

TensorId AtenCall::tensor(std::string_view argument) const {
    const AtenArgument* found = find(argument);
    return found && found->tensors.size() == 1 ? found->tensors[0] : no_tensor;
}

std::int64_t AtenCall::integer(std::string_view argument, std::int64_t fallback) const {
    const AtenArgument* found = find(argument);
    return found && found->integers.size() == 1 ? found->integers[0] : fallback;
}

std::span<const std::int64_t> AtenCall::integers(std::string_view argument) const {
    const AtenArgument* found = find(argument);
    return found ? std::span<const std::int64_t>(found->integers) : std::span<const std::int64_t>{};
}

bool is_of_known_library(std::string_view target) noexcept {
    static constexpr std::string_view libraries[] = {"aten", "prims", "quantized_decomposed", "torchvision",
                                                     "transformers"};
    const std::size_t colons = target.find("::");
    return colons == std::string_view::npos ||
           std::find(std::begin(libraries), std::end(libraries), target.substr(0, colons)) != std::end(libraries);
}

bool is_known_aten(std::string_view target) noexcept {
    return target == "aten::einsum" || target == "aten::tensordot" || target == "aten::_native_multi_head_attention" ||
           find_row(target) != nullptr;
}

void append_aten(Graph& graph, const AtenCall& call) {
    if (call.target == "aten::einsum" && Einsum(graph, call).append()) return;
    if (call.target == "aten::tensordot" && Einsum(graph, call).append_tensordot()) return;
    if (call.target == "aten::_native_multi_head_attention" && append_native_attention(graph, call)) return;
    const AtenRow* row = find_row(call.target);
    std::vector<TensorId> inputs = operands(call, row);
    if (!row) {
        append(graph, call, OpKind::custom, std::move(inputs), call.outputs);
        return;
    }
    const OpKind kind = refined_kind(graph, call, *row, inputs);
    check_operands(call, kind, inputs);
    if (row->name == "index" || row->name == "index_put") append_mask_lookup(graph, call);
    std::vector<Attribute> attributes;
    const bool known = std::all_of(inputs.begin(), inputs.end(),
                                   [&](TensorId id) { return id == no_tensor || graph.tensors[id].known_shape; });
    if (kind == row->kind && known) row->attributes({graph, call, attributes});
    if (kind == OpKind::linear && row->kind == OpKind::matmul) attributes = {{"transposed_weight", std::int64_t{0}}};
    if (kind == OpKind::pointwise) note_scalar_operand(call, inputs, attributes);
    const bool named = !row->function.empty() || kind == OpKind::pointwise;
    if (named) {
        const bool own = row->function.empty() || row->function == own_name;
        attributes.insert(attributes.begin(), {"function", std::string(own ? row->name : row->function)});
    }
    append(graph, call, kind, std::move(inputs), call.outputs, std::move(attributes));
}

}  // namespace ftax
