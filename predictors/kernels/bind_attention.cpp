#include <algorithm>

#include "predictors/kernels/bound_kernel.hpp"
#include "src/core/checked_math.hpp"
#include "src/core/operands.hpp"

namespace ftax {

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
    if (kernel.op().integer(latent_attribute, 0) != 0) {
        const AttentionWidths widths = attention_widths(kernel.graph, kernel.op(), kernel.bound);
        if (widths.latent) {
            shape.head_dim = (widths.key + widths.value) / 2;
            shape.latent_width = widths.key;
        } else {
            shape.kv_heads = shape.heads;
        }
    }
    // A single new query attends to every key, or to those of its window.
    shape.causal = shape.causal && (shape.q_length > 1 || shape.kv_length == 1);
    if (shape.window > 0 && shape.q_length == 1) shape.kv_length = std::min(shape.kv_length, shape.window);
    if (!shape.causal) shape.window = 0;
    // Flash kernels take heads of at most 256. Source: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp.
    using enum kernels::AttentionPath;
    if (shape.path != flash || shape.head_dim <= 256 || shape.latent_width > 0) return;
    shape.path = memory_efficient;
    shape.element_bytes = 2;
}

}  // namespace ftax
