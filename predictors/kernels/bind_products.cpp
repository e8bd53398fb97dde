#include <algorithm>
#include <array>
#include <cmath>

#include "graphs/base/checked_math.hpp"
#include "graphs/ir/operands.hpp"
#include "predictors/kernels/bound_kernel.hpp"

/// Dimensions of products: matrix products, convolutions, attention, experts and recurrences.
namespace ftax {
namespace {

/// Returns the last two entries of a per-direction attribute, or 1. A 1-D window lies along w.
std::array<std::int64_t, 2> window(const Op& op, std::string_view attribute) {
    const auto values = op.integers(attribute);
    return {values.size() > 1 ? values[values.size() - 2] : 1, values.empty() ? 1 : values.back()};
}

void bind_product_of_attention(kernels::GemmShape& shape, const BoundKernel& kernel) {
    kernels::AttentionShape whole;
    bind_dimensions(whole, kernel);
    const bool scores = kernel.lowered.part == OperatorPart::scores;
    shape.batch = checked_multiply(whole.batch, whole.heads);
    shape.m = whole.q_length;
    shape.n = scores ? whole.kv_length : whole.head_dim;
    shape.k = scores ? whole.head_dim : whole.kv_length;
}

/// Each step of a recurrence reuses the weights, with nothing else touched in between.
void bind_product_of_recurrence(kernels::GemmShape& shape, const BoundKernel& kernel) {
    const RecurrentDimensions d = recurrent_dimensions(kernel.graph, kernel.op(), kernel.bound);
    const bool of_state = kernel.lowered.part == OperatorPart::state_product;
    if (of_state) shape.weight_reuse_bytes = 0;
    shape.m = of_state ? d.batch : checked_multiply(d.steps, d.batch);
    shape.n = checked_multiply(checked_multiply(d.gates, d.hidden), of_state ? 1 : d.directions);
    shape.k = of_state                                                    ? d.hidden
              : kernel.lowered.part == OperatorPart::later_input_products ? checked_multiply(d.hidden, d.directions)
                                                                          : d.input;
}

}  // namespace

void bind_dimensions(kernels::GemmShape& shape, const BoundKernel& kernel) {
    const Op& op = kernel.op();
    if (op.kind == OpKind::attention) return bind_product_of_attention(shape, kernel);
    shape.weight_reuse_bytes = kernel.weight_bytes;
    if (op.kind == OpKind::recurrent) return bind_product_of_recurrence(shape, kernel);
    const Tensor& c = kernel.output();
    shape.n = kernel.dim(c, -1);
    shape.k = kernel.dim(kernel.input(0), op.kind == OpKind::matmul && op.integer("transpose_a", 0) != 0 ? -2 : -1);
    const std::int64_t rows = std::max<std::int64_t>(1, kernel.elements(op.outputs[0]) / shape.n);
    // A matrix shared by the whole batch folds the batch into the rows: one GEMM instead of many.
    const bool shared_right = op.kind == OpKind::linear || kernel.input(1).shape.size() <= 2;
    shape.m = shared_right ? rows : kernel.dim(c, -2);
    shape.batch = std::max<std::int64_t>(1, rows / shape.m);
    if (!shape.linear || shape.library == kernels::BlasLibrary::cublas) return;
    if (std::max({shape.m, shape.n, shape.k}) < shape.cublas_lt_limit) return;
    shape.library = kernels::BlasLibrary::cublas;
    shape.separate_bias = true;
}

void bind_dimensions(kernels::ConvShape& shape, const BoundKernel& kernel) {
    const Op& op = kernel.op();
    const Tensor &x = kernel.input(0), &w = kernel.input(1), &y = kernel.output();
    shape.batch = kernel.dim(x, 0);
    shape.in_channels = kernel.dim(x, 1);
    shape.out_channels = kernel.dim(y, 1);
    // The number of groups may depend on the batch (CondConv), so it is derived from the filter.
    shape.groups =
        std::max<std::int64_t>(1, shape.transposed ? op.integer("groups", 1) : shape.in_channels / kernel.dim(w, 1));
    const auto in = kernel.spatial(x), out = kernel.spatial(y), filter = kernel.spatial(w);
    const auto stride = window(op, "stride"), dilation = window(op, "dilation");
    const auto strides = op.integers("stride");
    shape.in_depth = in[0], shape.in_height = in[1], shape.in_width = in[2];
    shape.out_depth = out[0], shape.out_height = out[1], shape.out_width = out[2];
    shape.kernel_d = filter[0], shape.kernel_h = filter[1], shape.kernel_w = filter[2];
    shape.stride_d = strides.size() > 2 ? strides.front() : 1;
    shape.stride_h = stride[0], shape.stride_w = stride[1];
    shape.dilation_h = dilation[0], shape.dilation_w = dilation[1];
    shape.channels_last = shape.channels_last || is_channels_last(y, kernel.bound);
}

void bind_dimensions(kernels::AttentionShape& shape, const BoundKernel& kernel) {
    const Tensor &q = kernel.input(0), &k = kernel.input(1);
    const std::int64_t width = kernel.dim(q, -1);
    shape.head_dim = width;
    shape.q_length = kernel.dim(q, -2);
    shape.kv_length = kernel.dim(k, -2);
    shape.heads = q.shape.size() > 2 ? kernel.dim(q, -3) : 1;
    const std::int64_t per_batch = checked_multiply(checked_multiply(shape.heads, shape.q_length), width);
    shape.batch = std::max<std::int64_t>(1, kernel.elements(kernel.op().inputs[0]) / per_batch);
    if (k.shape.size() > 2) shape.kv_heads = kernel.dim(k, -3);
    if (kernel.op().integer(latent_attribute, 0) != 0 || shape.selects > 0) {
        const AttentionWidths widths = attention_widths(kernel.graph, kernel.op(), kernel.bound);
        shape.head_dim = (widths.key + widths.value) / 2;
        if (widths.latent) shape.latent_width = widths.key;
        if (!widths.latent) shape.kv_heads = shape.heads;
    }
    if (kernel.op().inputs[1] == kernel.op().inputs[2]) shape.latent_width = width;
    const bool compressed = kernel.op().integer(entries_attribute, 0) > 0;
    shape.gathers = (compressed || kernel.op().integer(latent_attribute, 0) == 2) && shape.latent_width > 0;
    // Beyond those of the new tokens and the window, keys stand for several tokens each.
    if (shape.window > 0)
        shape.window += std::min(kernel.op().integer(entries_attribute, 0), shape.kv_length - shape.q_length);
    // A single new query attends to every key, or to those of its window.
    shape.causal = shape.causal && (shape.q_length > 1 || shape.kv_length == 1);
    if (shape.window > 0 && shape.q_length == 1) shape.kv_length = std::min(shape.kv_length, shape.window);
    if (!shape.causal) shape.window = 0;
    const bool keeps_cache = shape.paged || shape.library == kernels::FlashLibrary::ggml;
    if (keeps_cache && shape.q_length == 1) shape.reuse_bytes = kernel.weight_bytes;  // the other layers' come between
    // Flash kernels take heads of at most 256. Source: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp.
    using enum kernels::AttentionPath;
    if (shape.path != flash || shape.head_dim <= 256 || shape.latent_width > 0) return;
    shape.path = memory_efficient;
    shape.element_bytes = 2;
}

void bind_dimensions(kernels::QuantizeShape& shape, const BoundKernel& kernel) {
    shape.columns = kernel.dim(kernel.graph.tensors[kernel.lowered.reads[0]], -1);
    shape.rows = std::max<std::int64_t>(1, kernel.elements(kernel.lowered.reads[0]) / shape.columns);
}

void bind_dimensions(kernels::GroupedGemmShape& shape, const BoundKernel& kernel) {
    shape.k = kernel.dim(kernel.input(0), -1);
    shape.n = kernel.dim(kernel.output(), -1);
    shape.rows = std::max<std::int64_t>(1, kernel.elements(kernel.lowered.reads[0]) / shape.k);
    shape.per_token = std::min(shape.per_token, shape.rows);
    if (shape.padding_cards == 0) return;
    // The rows of all cards' experts, and a tile for each of this card's; the first expert's weights multiply tiles
    // without rows. Source: vLLM 0.11.1, deep_gemm_utils.py (compute_aligned_M, deepgemm_moe_permute).
    constexpr double tile = kernels::padded_tile_rows;
    const double rows = real(shape.rows) * real(shape.padding_cards);
    shape.padded = tile * std::ceil((rows + real(shape.experts) * (tile - 1)) / tile);
}

void bind_dimensions(kernels::RecurrentShape& shape, const BoundKernel& kernel) {
    const RecurrentDimensions d = recurrent_dimensions(kernel.graph, kernel.op(), kernel.bound);
    shape = {d.steps, d.batch, d.hidden, d.gates, shape.element_bytes};
}

}  // namespace ftax
