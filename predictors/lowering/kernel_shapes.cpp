#include "predictors/lowering/kernel_shapes.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "ftax/precision.hpp"
#include "predictors/lowering/rewrites.hpp"
#include "src/core/checked_math.hpp"
#include "src/core/operands.hpp"

namespace ftax {
namespace {

constexpr std::size_t max_view_rank = 32;

/// Returns a dimension, counted from the back if negative. At least 1: empty tensors cost as much as the smallest
/// kernel, and the models never divide by zero.
std::int64_t dim(const Tensor& tensor, const BoundShapes& bound, int index) {
    const int rank = static_cast<int>(tensor.shape.size());
    const int at = index < 0 ? index + rank : index;
    return at >= 0 && at < rank ? std::max<std::int64_t>(1, bound[tensor.shape[at]]) : 1;
}

int element_bytes(const Schedule& schedule, TensorId tensor) {
    return std::max(1, bits_of(schedule.storage[tensor]) / 8);
}

std::int64_t tensor_bytes(const Graph& graph, const Schedule& schedule, const BoundShapes& bound, TensorId id) {
    if (!graph.tensors[id].known_shape) return 0;
    const std::int64_t bits = checked_multiply(element_count(graph.tensors[id], bound), bits_of(schedule.storage[id]));
    return ceil_quotient(bits, 8);
}

/// Returns the bytes that a kernel reads from a tensor; expanded dimensions (stride 0) are read once.
std::int64_t read_bytes(const Graph& graph, const Schedule& schedule, const BoundShapes& bound, TensorId id) {
    const Tensor& tensor = graph.tensors[id];
    if (tensor.strides.empty()) return tensor_bytes(graph, schedule, bound, id);
    std::int64_t bits = bits_of(schedule.storage[id]);
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
        if (bound[tensor.strides[i]] != 0) bits = checked_multiply(bits, bound[tensor.shape[i]]);
    }
    return ceil_quotient(bits, 8);
}

/// Returns the spatial dimensions d, h, w of an N,C,spatial… tensor, at least 1; leading ones are 1 for 1-D and 2-D
/// data.
std::array<std::int64_t, 3> spatial(const Tensor& tensor, const BoundShapes& bound) {
    std::array<std::int64_t, 3> result{1, 1, 1};
    for (std::size_t i = tensor.shape.size(), at = 3; i > 2 && at > 0; --i) {
        result[--at] = std::max<std::int64_t>(1, bound[tensor.shape[i - 1]]);
    }
    return result;
}

/// Returns the last two entries of a per-direction attribute, or `fallback`. A 1-D window lies along w.
std::array<std::int64_t, 2> window(const Op& op, std::string_view attribute, std::int64_t fallback) {
    const auto values = op.integers(attribute);
    std::array<std::int64_t, 2> result{fallback, fallback};
    if (!values.empty()) result[1] = values.back();
    if (values.size() > 1) result[0] = values[values.size() - 2];
    return result;
}

/// Copies the dimensions longer than 1 with their strides, in order.
struct StridedShape {
    std::array<std::int64_t, max_view_rank> size{}, stride{};
    std::size_t rank = 0;
};
StridedShape without_ones(const Tensor& tensor, const BoundShapes& bound) {
    StridedShape result;
    for (std::size_t i = 0; i < tensor.shape.size() && result.rank < max_view_rank; ++i) {
        if (bound[tensor.shape[i]] == 1) continue;
        result.size[result.rank] = bound[tensor.shape[i]];
        result.stride[result.rank++] = bound[tensor.strides[i]];
    }
    return result;
}

/// Source: aten/src/ATen/TensorUtils.cpp, computeStride_impl: a view exists when each group of old dimensions that a
/// group of new dimensions covers is contiguous within itself.
bool is_viewable(const Tensor& from, const Tensor& to, const BoundShapes& bound) {
    if (from.strides.empty()) return true;
    const StridedShape old = without_ones(from, bound);
    if (old.rank == 0) return true;
    auto new_dim = static_cast<std::ptrdiff_t>(to.shape.size()) - 1;
    std::int64_t chunk = 1;
    std::int64_t covered = 1;
    for (std::size_t i = old.rank; i-- > 0;) {
        chunk = checked_multiply(chunk, old.size[i]);
        const bool chunk_ends = i == 0 || old.stride[i - 1] != checked_multiply(old.size[i], old.stride[i]);
        if (!chunk_ends) continue;
        while (new_dim >= 0 && (covered < chunk || bound[to.shape[new_dim]] == 1))
            covered = checked_multiply(covered, bound[to.shape[new_dim--]]);
        if (covered != chunk) return false;
        chunk = covered = 1;
    }
    return true;
}

bool is_contiguous(const Tensor& tensor, const BoundShapes& bound) {
    if (tensor.strides.empty()) return true;
    const StridedShape dims = without_ones(tensor, bound);
    std::int64_t expected = 1;
    for (std::size_t i = dims.rank; i-- > 0; expected = checked_multiply(expected, dims.size[i])) {
        if (dims.stride[i] != expected) return false;
    }
    return true;
}

bool is_channels_last(const Tensor& tensor, const BoundShapes& bound) {
    const std::size_t rank = tensor.shape.size();
    if (tensor.strides.empty() || (rank != 4 && rank != 5)) return false;
    const auto laid_out = [&](std::size_t i, std::int64_t stride) {
        return bound[tensor.shape[i]] == 1 || bound[tensor.strides[i]] == stride;
    };
    if (!laid_out(1, 1)) return false;
    std::int64_t step = bound[tensor.shape[1]];
    for (std::size_t i = rank; i-- > 2; step = checked_multiply(step, bound[tensor.shape[i]])) {
        if (!laid_out(i, step)) return false;
    }
    return true;
}

bool leading_dims_merge(const Tensor& tensor, const BoundShapes& bound) {
    if (tensor.strides.empty()) return true;
    StridedShape dims;
    for (std::size_t i = 0; i + 2 < tensor.shape.size() && dims.rank < max_view_rank; ++i) {
        if (bound[tensor.shape[i]] == 1) continue;
        dims.size[dims.rank] = bound[tensor.shape[i]];
        dims.stride[dims.rank++] = bound[tensor.strides[i]];
    }
    for (std::size_t i = 0; i + 1 < dims.rank; ++i) {
        if (dims.stride[i] != checked_multiply(dims.size[i + 1], dims.stride[i + 1])) return false;
    }
    return true;
}

kernels::AttentionShape attention_dimensions(const Graph& graph, const Schedule& schedule, const Op& op,
                                             const BoundShapes& bound) {
    const Tensor& q = graph.tensors[op.inputs[0]];
    const Tensor& k = graph.tensors[op.inputs[1]];
    kernels::AttentionShape shape;
    shape.element_bytes = element_bytes(schedule, op.outputs[0]);
    const std::int64_t width = dim(q, bound, -1);
    shape.head_dim = width;
    shape.q_length = dim(q, bound, -2);
    shape.kv_length = dim(k, bound, -2);
    shape.heads = q.shape.size() > 2 ? dim(q, bound, -3) : 1;
    const std::int64_t per_batch = checked_multiply(checked_multiply(shape.heads, shape.q_length), width);
    shape.batch = std::max<std::int64_t>(1, element_count(q, bound) / per_batch);
    if (k.shape.size() > 2) shape.kv_heads = dim(k, bound, -3);
    if (op.integer(latent_attribute, 0) != 0) {
        const AttentionWidths widths = attention_widths(graph, op, bound);
        if (widths.latent) {
            shape.head_dim = (widths.key + widths.value) / 2;
            shape.latent_width = widths.key;
        } else {
            shape.kv_heads = shape.heads;
        }
    }
    // A single new query attends to every key.
    shape.causal = op.integer("causal", 0) != 0 && (shape.q_length > 1 || shape.kv_length == 1);
    return shape;
}

/// Separate kernels of an attention are never narrower. Source: TensorRT, plugin/bertQKVToContextPlugin: cuBLAS in
/// fp16.
constexpr int least_score_bytes = 2;

kernels::GemmShape product_of_attention(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                        const BoundShapes& bound) {
    const kernels::AttentionShape whole = attention_dimensions(graph, schedule, graph.ops[kernel.op], bound);
    kernels::GemmShape shape;
    shape.element_bytes = std::max(least_score_bytes, whole.element_bytes);
    shape.engine = kernel.engine;
    shape.batch = checked_multiply(whole.batch, whole.heads);
    shape.m = whole.q_length;
    shape.n = kernel.part == OperatorPart::scores ? whole.kv_length : whole.head_dim;
    shape.k = kernel.part == OperatorPart::scores ? whole.head_dim : whole.kv_length;
    return shape;
}

kernels::MemoryShape softmax_of_attention(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                          const BoundShapes& bound) {
    const kernels::AttentionShape whole = attention_dimensions(graph, schedule, graph.ops[kernel.op], bound);
    kernels::MemoryShape shape;
    shape.cls = kernels::MemoryClass::softmax;
    shape.engine = kernel.engine;
    shape.element_bytes = std::max(least_score_bytes, whole.element_bytes);
    shape.row_length = whole.kv_length;
    shape.rows = checked_multiply(checked_multiply(whole.batch, whole.heads), whole.q_length);
    shape.elements = checked_multiply(shape.rows, shape.row_length);
    shape.read_bytes = shape.write_bytes = checked_multiply(shape.elements, shape.element_bytes);
    return shape;
}

/// Returns the shape of a product of a recurrence. Each step reuses the weights, with nothing else touched in between.
kernels::GemmShape product_of_recurrence(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                         const BoundShapes& bound) {
    const Op& op = graph.ops[kernel.op];
    const RecurrentDimensions d = recurrent_dimensions(graph, op, bound);
    const bool of_state = kernel.part == OperatorPart::state_product;
    kernels::GemmShape shape;
    shape.engine = kernel.engine;
    shape.element_bytes = element_bytes(schedule, op.outputs[0]);
    shape.linear = true;
    shape.library = kernels::BlasLibrary::cublas;
    shape.older_library = kernel.older_blas;
    shape.weight_reuse_bytes = of_state ? 0 : schedule.weight_bytes;
    shape.m = of_state ? d.batch : checked_multiply(d.steps, d.batch);
    shape.n = checked_multiply(checked_multiply(d.gates, d.hidden), of_state ? 1 : d.directions);
    shape.k = of_state                                            ? d.hidden
              : kernel.part == OperatorPart::later_input_products ? checked_multiply(d.hidden, d.directions)
                                                                  : d.input;
    return shape;
}

/// State update: reads the gates of one step and the cell's state, writes state and output.
kernels::MemoryShape update_of_recurrence(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                          const BoundShapes& bound) {
    const Op& op = graph.ops[kernel.op];
    const RecurrentDimensions d = recurrent_dimensions(graph, op, bound);
    kernels::MemoryShape shape;
    shape.cls = kernels::MemoryClass::transcendental;
    shape.engine = kernel.engine;
    shape.element_bytes = element_bytes(schedule, op.outputs[0]);
    shape.rows = d.batch;
    shape.row_length = checked_multiply(d.gates, d.hidden);
    shape.elements = checked_multiply(shape.rows, shape.row_length);
    const std::int64_t state_bytes = checked_multiply(checked_multiply(d.batch, d.hidden), shape.element_bytes);
    shape.read_bytes = checked_add(checked_multiply(shape.elements, shape.element_bytes), state_bytes);
    shape.write_bytes = checked_multiply(op.text("cell") == "lstm" ? 3 : 2, state_bytes);
    shape.waits = 2;  // elemWiseRNNcell, 10 sequences of 256 on an H200: 1.8 µs (data/measurements)
    return shape;
}

kernels::RecurrentShape recurrent_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                        const BoundShapes& bound) {
    const Op& op = graph.ops[kernel.op];
    const RecurrentDimensions d = recurrent_dimensions(graph, op, bound);
    return {.steps = d.steps,
            .batch = d.batch,
            .hidden = d.hidden,
            .gates = d.gates,
            .element_bytes = element_bytes(schedule, op.outputs[0])};
}

kernels::GemmShape gemm_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                              const BoundShapes& bound) {
    const Op& op = graph.ops[kernel.op];
    if (op.kind == OpKind::attention) return product_of_attention(graph, schedule, kernel, bound);
    if (op.kind == OpKind::recurrent) return product_of_recurrence(graph, schedule, kernel, bound);
    const Tensor& a = graph.tensors[op.inputs[0]];
    const Tensor& c = graph.tensors[op.outputs[0]];
    kernels::GemmShape shape;
    shape.engine = kernel.engine;
    shape.element_bytes = element_bytes(schedule, kernel.wide_activations ? op.inputs[1] : op.outputs[0]);
    shape.weight_reuse_bytes = schedule.weight_bytes;
    shape.older_library = kernel.older_blas;
    shape.newest_library = kernel.torch >= 211;
    shape.operands = kernel.operands;
    shape.row_bytes_per_cycle = kernel.row_bytes_per_cycle;
    shape.dot_products = kernel.dot_products;
    shape.n = dim(c, bound, -1);
    shape.k = dim(a, bound, op.kind == OpKind::matmul && op.integer("transpose_a", 0) != 0 ? -2 : -1);
    const std::int64_t rows = std::max<std::int64_t>(1, element_count(c, bound) / shape.n);
    const bool has_bias = op.inputs.size() > 2 && op.inputs[2] != no_tensor;
    const auto choose_library = [&] {
        const bool through_lt = has_bias && std::max({shape.m, shape.n, shape.k}) < kernel.cublas_lt_limit;
        shape.library = through_lt ? kernels::BlasLibrary::cublas_lt : kernels::BlasLibrary::cublas;
        shape.separate_bias = has_bias && !through_lt && kernel.cublas_lt_limit > 0;
    };
    if (op.kind == OpKind::linear) {
        shape.linear = true;
        shape.m = rows;
        choose_library();
        return shape;
    }
    const Tensor& b = graph.tensors[op.inputs[1]];
    // A matrix shared by the whole batch folds the batch into the rows: one GEMM instead of many.
    const bool shared_right = b.shape.size() <= 2;
    shape.linear = shared_right && b.role == TensorRole::weight;
    shape.m = shared_right ? rows : dim(c, bound, -2);
    shape.batch = std::max<std::int64_t>(1, rows / shape.m);
    if (shape.linear) choose_library();
    return shape;
}

kernels::ConvShape conv_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                              const BoundShapes& bound, bool engine_is_channels_last) {
    const Op& op = graph.ops[kernel.op];
    const Tensor& x = graph.tensors[op.inputs[0]];
    const Tensor& w = graph.tensors[op.inputs[1]];
    const Tensor& y = graph.tensors[op.outputs[0]];
    const auto in = spatial(x, bound);
    const auto out = spatial(y, bound);
    const auto filter = spatial(w, bound);
    const auto strides = op.integers("stride");
    const auto stride = window(op, "stride", 1);
    const auto dilation = window(op, "dilation", 1);
    const bool transposed = op.kind == OpKind::conv_transpose;
    kernels::ConvShape shape;
    shape.batch = dim(x, bound, 0);
    shape.in_channels = dim(x, bound, 1);
    shape.out_channels = dim(y, bound, 1);
    // The number of groups may depend on the batch (CondConv), so it is derived from the filter.
    shape.groups =
        std::max<std::int64_t>(1, transposed ? op.integer("groups", 1) : shape.in_channels / dim(w, bound, 1));
    shape.in_depth = in[0], shape.in_height = in[1], shape.in_width = in[2];
    shape.out_depth = out[0], shape.out_height = out[1], shape.out_width = out[2];
    shape.kernel_d = filter[0], shape.kernel_h = filter[1], shape.kernel_w = filter[2];
    shape.stride_d = strides.size() > 2 ? strides.front() : 1;
    shape.stride_h = stride[0], shape.stride_w = stride[1];
    shape.dilation_h = dilation[0], shape.dilation_w = dilation[1];
    const bool quantized = precision_spec(kernel.operands).quantizes_weights();
    shape.element_bytes =
        quantized ? bits_of(precision_spec(kernel.operands).activation) / 8 : element_bytes(schedule, op.outputs[0]);
    shape.channels_last = quantized || engine_is_channels_last || is_channels_last(y, bound);
    shape.older_library = kernel.older_blas;
    shape.library = kernel.conv_library;
    shape.workspace_bytes = kernel.conv_workspace_bytes;
    shape.transposed = transposed;
    return shape;
}

constexpr std::int64_t sector_bytes = 32;

/// Returns how far apart in memory the neighbours of one tensor are in another of the same shape, in elements of the
/// latter; 1 if both have the same fastest dimension. The second one is taken as stored in rows if `by_rows`.
std::int64_t stride_between(const Tensor& a, const Tensor& b, const BoundShapes& bound, bool by_rows = false) {
    const bool in_rows = by_rows || b.strides.empty();
    if (a.shape.size() != b.shape.size() || (a.strides.empty() && in_rows)) return 1;
    std::int64_t step_a = 1, step_b = 1, stride = 1;
    for (std::size_t i = a.shape.size(); i-- > 0;) {
        const std::int64_t size = bound[a.shape[i]];
        if (size != bound[b.shape[i]]) return 1;
        const std::int64_t stride_a = a.strides.empty() ? step_a : bound[a.strides[i]];
        const std::int64_t stride_b = in_rows ? step_b : bound[b.strides[i]];
        step_a = checked_multiply(step_a, size), step_b = checked_multiply(step_b, size);
        // The fastest dimension determines the coalescing of warps.
        if (size > 1 && (stride_a == 1) != (stride_b == 1)) stride = std::max({stride, stride_a, stride_b});
    }
    return stride;
}

/// Returns the bytes between neighbours of a kernel's result in a tensor that it reads, or of its operands in the
/// result, at most a memory sector; 0 if they are neighbours there, too.
std::int64_t stride_bytes(const Graph& graph, const Schedule& schedule, const Kernel& kernel, TensorId id,
                          const BoundShapes& bound) {
    const Tensor& in = graph.tensors[id];
    if (!in.known_shape) return 0;
    const Tensor& out = graph.tensors[kernel.writes[0]];
    const bool into_rows =
        kernel.memory_class == kernels::MemoryClass::transpose && (kernel.writes[0] == id || out.strides.empty());
    const std::int64_t stride = stride_between(in, into_rows ? in : out, bound, into_rows);
    return stride == 1 ? 0 : std::min(sector_bytes, checked_multiply(stride, element_bytes(schedule, id)));
}

kernels::MemoryClass class_for_layout(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                      const BoundShapes& bound) {
    using kernels::MemoryClass;
    const bool copies = kernel.memory_class == MemoryClass::transpose && graph.ops[kernel.op].kind == OpKind::copy;
    if (!copies && kernel.memory_class != MemoryClass::pointwise && kernel.memory_class != MemoryClass::transcendental)
        return kernel.memory_class;
    std::int64_t stride = 0;
    for (const TensorId input : kernel.reads)
        stride = std::max(stride, stride_bytes(graph, schedule, kernel, input, bound));
    if (stride == sector_bytes) return MemoryClass::transpose;
    return copies && stride > 0 ? MemoryClass::copy : kernel.memory_class;
}

/// Returns the elements that a kernel looks up in its table `place`; nullopt if it reads the whole tensor.
std::optional<std::int64_t> looked_up(const Graph& graph, const Kernel& kernel, std::size_t place,
                                      const BoundShapes& bound) {
    const Op& op = graph.ops[kernel.op];
    if (kernel.lookup && place == 0) return looked_up_elements(graph, op, bound);
    const auto pairs = op.integers(rewrites::lookups);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
        if (pairs[i] == static_cast<std::int64_t>(kernel.reads[place]))
            return element_count(graph.tensors[static_cast<TensorId>(pairs[i + 1])], bound);
    }
    return std::nullopt;
}

/// Returns the memory latencies in sequence of a reduction over other dimensions than the fastest: threads along the
/// fastest dimension, four outputs each if it allows vectors, and rows of threads that take four elements at a time.
/// From 1,024 elements on, blocks share an output.
/// Source: PyTorch 2.5 aten/src/ATen/native/cuda/Reduce.cuh (setReduceConfig). Sixteen such steps take 12 latencies on
/// an H100 and an H200 for sums and products, 28 for an extreme and its index (data/measurements, KernelBench 47 to
/// 53).
int waits_of_strided_reduction(const Graph& graph, const Op& op, std::int64_t last_axis, std::int64_t length,
                               const BoundShapes& bound) {
    const Tensor& in = graph.tensors[op.inputs[0]];
    std::int64_t fastest = 1;
    for (auto i = static_cast<std::size_t>(last_axis) + 1; i < in.shape.size(); ++i)
        fastest = checked_multiply(fastest, bound[in.shape[i]]);
    const std::int64_t threads = fastest >= 128 && fastest % 4 == 0 ? 4 : 16;
    const std::int64_t steps = std::min<std::int64_t>(ceil_quotient(length, 4 * threads), 64);
    const bool with_index = op.outputs.size() > 1 || op.text("function").starts_with("arg");
    return static_cast<int>(ceil_quotient(steps * (with_index ? 7 : 3), 4));
}

kernels::MemoryShape memory_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                  const BoundShapes& bound) {
    if (kernel.part == OperatorPart::softmax) return softmax_of_attention(graph, schedule, kernel, bound);
    if (kernel.part == OperatorPart::state_update) return update_of_recurrence(graph, schedule, kernel, bound);
    kernels::MemoryShape shape;
    shape.engine = kernel.engine;
    shape.cls = kernel.writes.empty() ? kernel.memory_class : class_for_layout(graph, schedule, kernel, bound);
    TensorId largest = no_tensor;
    for (const TensorId id : kernel.writes) {
        if (largest == no_tensor) largest = id;
        if (!graph.tensors[id].known_shape) continue;
        const DType type = kernel.written_type.value_or(schedule.storage[id]);
        const std::int64_t elements = element_count(graph.tensors[id], bound);
        shape.write_bytes = checked_add(shape.write_bytes, ceil_quotient(checked_multiply(elements, bits_of(type)), 8));
        shape.accesses = checked_add(shape.accesses, elements);
        shape.elements = std::max(shape.elements, elements);
    }
    const std::int64_t output_elements = shape.elements;
    for (std::size_t i = 0; i < kernel.reads.size(); ++i) {
        const TensorId id = kernel.reads[i];
        std::int64_t bytes = read_bytes(graph, schedule, bound, id);
        if (const auto needed = looked_up(graph, kernel, i, bound)) {
            bytes = std::min(bytes, ceil_quotient(checked_multiply(*needed, bits_of(schedule.storage[id])), 8));
        } else if (graph.tensors[id].known_shape &&
                   (bytes > shape.elements / 8 || !graph.tensors[id].strides.empty())) {  // otherwise too small
            const std::int64_t elements = element_count(graph.tensors[id], bound);
            if (elements > shape.elements) {
                shape.elements = elements;
                largest = id;
            }
        }
        shape.accesses = checked_add(shape.accesses, bytes / element_bytes(schedule, id));
        // Sectors between the neighbours of every second or fourth element are read whole.
        const bool strides = !kernel.writes.empty() &&
                             (shape.cls == kernels::MemoryClass::pointwise || shape.cls == kernels::MemoryClass::copy ||
                              shape.cls == kernels::MemoryClass::transcendental);
        if (const auto stride = strides ? stride_bytes(graph, schedule, kernel, id, bound) : 0; stride > 0)
            bytes = checked_multiply(bytes / element_bytes(schedule, id), stride);
        constexpr std::int64_t single_value = 8;
        shape.vectorized = shape.vectorized && (bytes == shape.write_bytes || bytes <= single_value);
        shape.read_bytes = checked_add(shape.read_bytes, bytes);
    }
    if (largest == no_tensor) return shape;
    shape.element_bytes = element_bytes(schedule, largest);
    const Op& op = graph.ops[kernel.op];
    // Rows: softmax and norms work on the last dimension (or the given axis); a row of a reduction is reduced to one
    // output element.
    const bool reduces =
        kernel.memory_class == kernels::MemoryClass::reduce || kernel.memory_class == kernels::MemoryClass::pool;
    if (reduces && output_elements > 0) {
        shape.rows = output_elements;
        shape.row_length = std::max<std::int64_t>(1, shape.elements / output_elements);
        const auto axes = op.integers("axes");
        const auto last = static_cast<std::int64_t>(graph.tensors[op.inputs[0]].shape.size()) - 1;
        const bool within = axes.empty() || std::find(axes.begin(), axes.end(), last) != axes.end();
        shape.vectorized = !within || shape.row_length >= 512;
        if (!within && op.kind == OpKind::reduce && op.integer(rewrites::generated, 0) == 0)
            shape.waits =
                waits_of_strided_reduction(graph, op, *std::ranges::max_element(axes), shape.row_length, bound);
        if (op.kind == OpKind::pool) {
            shape.row_length = 1;
            for (const std::int64_t side : op.integers("kernel"))
                shape.row_length = checked_multiply(shape.row_length, side);
            shape.indexed = op.text("function") == "max";
        }
        // One warp sums the losses of all rows, which are in the L2. Source: PyTorch 2.5
        // aten/src/ATen/native/cuda/Loss.cu (nll_loss_forward_reduce_cuda_kernel_2d); kernelbench.csv, cross-entropy of
        // 4,096 rows: 550 to 700 cycles for 32 of them. PyTorch 2.11 has eight warps: 8.5 µs on an H100 and an H200.
        if (op.text("function") == "nll_loss") shape.elements_per_wait = kernel.torch >= 211 ? 288 : 48;
    } else if (shape.cls == kernels::MemoryClass::resize) {
        const Tensor& out = graph.tensors[kernel.writes[0]];
        const auto plane = spatial(out, bound);
        if (kernel.divides_coordinates) shape.coordinates = static_cast<int>(out.shape.size());
        shape.row_length = checked_multiply(checked_multiply(plane[0], plane[1]), plane[2]);
        // Channels-last kernels use one thread per output (upsample_bilinear2d_nhwc_out_frame); nearest-neighbour
        // kernels also distribute the planes over threads (upsample_nearest2d_out_frame).
        const bool samples = op.text("function") == "grid_sample";
        const bool walks = samples || (op.text("function") != "nearest" && !is_channels_last(out, bound));
        shape.rows = walks ? output_elements / shape.row_length : 0;
        if (samples) {
            // A thread computes one pixel of an image for all channels (grid_sampler_2d_kernel, GridSampler.cu).
            const std::int64_t images = std::max<std::int64_t>(1, dim(out, bound, 0));
            shape.row_length = checked_multiply(shape.row_length, images);
            shape.rows = std::max<std::int64_t>(1, shape.rows / images);
        }
    } else if (shape.cls == kernels::MemoryClass::group_norm && op.kind != OpKind::local_response_norm) {
        // A row shares its statistics, over all images in a batch norm. PyTorch's kernel for groups
        // (RowwiseMomentsCUDAKernel) reads 512 elements at a time, cuDNN's for channels (bn_fw_tr_1C11_kernel_NCHW)
        // reads more, but twice. Source: kernelbench.csv, batch norms of 32 and 64 channels in training: an A100 waits
        // every 530 elements, an H100 every 860.
        const std::int64_t batch = op.kind == OpKind::batch_norm ? 1 : dim(graph.tensors[op.inputs[0]], bound, 0);
        const bool grouped = op.kind == OpKind::group_norm;
        const std::int64_t groups = grouped ? op.integer("groups", 1) : dim(graph.tensors[largest], bound, 1);
        shape.rows = std::max<std::int64_t>(1, checked_multiply(batch, groups));
        shape.row_length = std::max<std::int64_t>(1, shape.elements / shape.rows);
        shape.elements_per_wait = grouped ? 512 : 640;
    } else {
        const Tensor& whole = graph.tensors[largest];
        const int rank = static_cast<int>(whole.shape.size());
        const bool is_softmax = op.kind == OpKind::softmax || op.kind == OpKind::log_softmax;
        const bool is_norm = op.kind == OpKind::layer_norm || op.kind == OpKind::rms_norm;
        int axis = is_softmax || is_norm ? static_cast<int>(op.integer("axis", -1)) : -1;
        shape.root_mean_square = op.kind == OpKind::rms_norm;
        if (axis < 0) axis += rank;
        shape.row_length = dim(whole, bound, axis);
        for (int i = axis + 1; is_norm && i < rank; ++i)
            shape.row_length = checked_multiply(shape.row_length, dim(whole, bound, i));
        for (int i = 2; shape.cls == kernels::MemoryClass::batch_norm && i < rank - 1; ++i)
            shape.row_length = checked_multiply(shape.row_length, dim(whole, bound, i));
        shape.rows = shape.elements / shape.row_length;
        // A block scans 256 elements of a row at a time. Source: PyTorch 2.11 ScanUtils.cuh
        // (tensor_kernel_scan_innermost_dim); 128 rows of 4,000 take 19 to 22 µs on an H100 and an H200.
        const std::int64_t scanned = op.integer("axis", -1);
        if (op.kind == OpKind::cumulative && (scanned == -1 || scanned == rank - 1))
            shape.waits = static_cast<int>(ceil_quotient(checked_multiply(shape.row_length, 9), 1024));
    }
    // Vectorised since 2.6. Source: PyTorch pull request 137053; aten/src/ATen/native/cuda/Copy.cu, 2.11.
    const bool narrows = shape.cls == kernels::MemoryClass::pointwise && kernel.reads.size() == 1 &&
                         kernel.torch >= 206 && schedule.storage[kernel.reads[0]] == DType::f32 &&
                         bits_of(kernel.written_type.value_or(schedule.storage[kernel.writes[0]])) == 16;
    if (op.integer(rewrites::generated, 0) != 0 || narrows) shape.vectorized = true;
    // A reduction loads, then combines what its warps have. Source: kernels of KernelBench's compiled networks on an
    // H200 (data/measurements), 1.6 µs at least where elementwise ones take 0.75.
    shape.waits += 2 * static_cast<int>(op.integer(rewrites::reductions, 0));
    constexpr int first_torch_with_coalescing = 208;  // Source: torch/_inductor/tiling_utils.py, from 2.8 on
    const std::int64_t strided = op.integer(rewrites::strided_tensor, -1);
    if (strided >= 0 && kernel.torch > 0 && kernel.torch < first_torch_with_coalescing)
        shape.strided_elements = element_count(graph.tensors[static_cast<TensorId>(strided)], bound);
    if (const std::string_view token = op.text(rewrites::token_kernel); !token.empty()) {
        shape.token = token == "norm" ? kernels::TokenKernel::norm : kernels::TokenKernel::gated;
        shape.vectorized = true;
    }
    return shape;
}

kernels::AttentionShape attention_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                        const BoundShapes& bound) {
    const Op& op = graph.ops[kernel.op];
    const Tensor& q = graph.tensors[op.inputs[0]];
    kernels::AttentionShape shape = attention_dimensions(graph, schedule, op, bound);
    if (kernel.engine) {
        shape.path = kernels::AttentionPath::engine;
        shape.whole_heads = kernel.whole_heads;
        return shape;
    }
    if (kernel.wide_activations) {
        shape.path = kernels::AttentionPath::products;
        shape.element_bytes = element_bytes(schedule, op.inputs[1]);
        return shape;
    }
    if (kernel.written_type) shape.element_bytes = bits_of(*kernel.written_type) / 8;
    const bool half = shape.element_bytes == 2;
    const bool masked = op.inputs.size() > 3 && op.inputs[3] != no_tensor;
    // The fused kernels require four dimensions; flash needs half precision, no mask (cuDNN takes one) and heads of at
    // most 256. Source: aten/src/ATen/native/transformers/cuda/sdp_utils.cpp.
    if (q.shape.size() != 4) {
        shape.path = kernels::AttentionPath::math;
    } else {
        const bool flash =
            half && (!masked || kernel.cudnn_attention) && (shape.head_dim <= 256 || shape.latent_width > 0);
        shape.path = flash ? kernels::AttentionPath::flash : kernels::AttentionPath::memory_efficient;
    }
    shape.paged = op.integer(rewrites::paged, 0) != 0;
    const std::int64_t limit = shape.paged ? op.integer(window_attribute, 0) : 0;
    if (shape.causal) shape.window = limit;
    if (limit > 0 && shape.q_length == 1) shape.kv_length = std::min(shape.kv_length, limit);
    constexpr int first_with_flash2 = 202;  // Source: PyTorch 2.2's release notes
    using enum kernels::FlashLibrary;
    shape.library = shape.paged                                            ? generation
                    : kernel.cudnn_attention                               ? cudnn
                    : kernel.torch > 0 && kernel.torch < first_with_flash2 ? flash1
                                                                           : flash2;
    // 8-bit keys and values are most of the traffic of a decoding step.
    if (shape.path == kernels::AttentionPath::flash) {
        shape.element_bytes = std::min(shape.element_bytes, element_bytes(schedule, op.inputs[1]));
    }
    return shape;
}

kernels::QuantizeShape quantize_shape(const Graph& graph, const Kernel& kernel, const BoundShapes& bound) {
    const Tensor& x = graph.tensors[kernel.reads[0]];
    const std::int64_t columns = dim(x, bound, -1);
    return {std::max<std::int64_t>(1, element_count(x, bound) / columns), columns, kernel.operands};
}

kernels::GroupedGemmShape grouped_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel,
                                        const BoundShapes& bound) {
    const Op& op = graph.ops[kernel.op];
    const Tensor& x = graph.tensors[op.inputs[0]];
    const Tensor& y = graph.tensors[op.outputs[0]];
    const bool grouped = x.producer != no_op && graph.ops[x.producer].kind == OpKind::reshape;
    const Tensor& sorted = grouped ? graph.tensors[graph.ops[x.producer].inputs[0]] : x;
    kernels::GroupedGemmShape shape;
    shape.experts = op.integer(experts_attribute, 1);
    shape.k = dim(x, bound, -1);
    shape.n = dim(y, bound, -1);
    shape.rows = std::max<std::int64_t>(1, element_count(sorted, bound) / shape.k);
    shape.per_token = std::min({op.integer(experts_per_token_attribute, 1), shape.experts, shape.rows});
    shape.element_bytes = element_bytes(schedule, op.outputs[0]);
    shape.operands = kernel.operands;
    shape.sorted = kernel.sorts_experts;
    if (kernel.pads_experts) {
        // The rows of all cards' experts, and a tile for each of this card's; the first expert's weights multiply tiles
        // without rows. Source: vLLM 0.11.1, deep_gemm_utils.py (compute_aligned_M, deepgemm_moe_permute).
        constexpr double tile = kernels::padded_tile_rows;
        const double rows = static_cast<double>(shape.rows) * static_cast<double>(op.integer("cards", 1));
        shape.padded = tile * std::ceil((rows + static_cast<double>(shape.experts) * (tile - 1)) / tile);
        shape.gated = op.integer("gated", 0) != 0;
    }
    return shape;
}

}  // namespace

KernelShape kernel_shape(const Graph& graph, const Schedule& schedule, const Kernel& kernel, const BoundShapes& bound,
                         bool engine_is_channels_last) {
    switch (kernel.cls) {
        case KernelClass::gemm:
            return gemm_shape(graph, schedule, kernel, bound);
        case KernelClass::conv:
            return conv_shape(graph, schedule, kernel, bound, engine_is_channels_last);
        case KernelClass::attention:
            return attention_shape(graph, schedule, kernel, bound);
        case KernelClass::quantize:
            return quantize_shape(graph, kernel, bound);
        case KernelClass::grouped_gemm:
            return grouped_shape(graph, schedule, kernel, bound);
        case KernelClass::recurrent:
            return recurrent_shape(graph, schedule, kernel, bound);
        case KernelClass::memory:
            break;
    }
    return memory_shape(graph, schedule, kernel, bound);
}

bool is_launched(const Graph& graph, const Kernel& kernel, const BoundShapes& bound) {
    switch (kernel.condition) {
        case LaunchCondition::always:
            return true;
        case LaunchCondition::unless_viewable:
            return !is_viewable(graph.tensors[kernel.reads[0]], graph.tensors[kernel.writes[0]], bound);
        case LaunchCondition::unless_contiguous:
            return !is_contiguous(graph.tensors[graph.ops[kernel.op].inputs[0]], bound);
        case LaunchCondition::unless_in_format_of_result: {
            const Tensor& result = graph.tensors[graph.ops[kernel.op].outputs[0]];
            const Tensor& input = graph.tensors[kernel.reads[0]];
            return is_channels_last(result, bound) ? !is_channels_last(input, bound) : !is_contiguous(input, bound);
        }
        case LaunchCondition::within_longest:
        case LaunchCondition::beyond_longest: {
            const Op& op = graph.ops[kernel.op];
            const std::int64_t length =
                std::max(dim(graph.tensors[op.inputs[0]], bound, -2), dim(graph.tensors[op.inputs[1]], bound, -2));
            return (length <= kernel.longest) == (kernel.condition == LaunchCondition::within_longest);
        }
        case LaunchCondition::beyond_few_rows: {
            const Tensor& result = graph.tensors[graph.ops[kernel.op].outputs[0]];
            return element_count(result, bound) > few_rows * dim(result, bound, -1);
        }
        case LaunchCondition::unless_batch_merges:
            return !leading_dims_merge(graph.tensors[kernel.reads[0]], bound);
    }
    return true;
}

std::int64_t repetitions(const Graph& graph, const Kernel& kernel, const BoundShapes& bound) {
    const Op& op = graph.ops[kernel.op];
    if (op.kind != OpKind::recurrent || kernel.part == OperatorPart::whole) return 1;
    const RecurrentDimensions d = recurrent_dimensions(graph, op, bound);
    switch (kernel.part) {
        case OperatorPart::later_input_products:
            return d.layers - 1;
        case OperatorPart::steps:
            return checked_multiply(d.layers, d.directions);
        case OperatorPart::state_product:
        case OperatorPart::state_update:
            return checked_multiply(checked_multiply(d.steps, d.layers), d.directions);
        default:
            return 1;
    }
}

}  // namespace ftax
