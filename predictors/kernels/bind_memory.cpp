#include <algorithm>

#include "graphs/base/checked_math.hpp"
#include "graphs/ir/operands.hpp"
#include "predictors/kernels/bound_kernel.hpp"

/// Traffic and rows of memory-bound kernels.
namespace ftax {
namespace {

using kernels::MemoryClass;
using kernels::MemoryShape;

constexpr std::int64_t sector_bytes = 32;

/// Returns the bytes that a kernel reads from a tensor; expanded dimensions (stride 0) are read once.
std::int64_t read_bytes(const BoundKernel& kernel, TensorId id) {
    const Tensor& tensor = kernel.graph.tensors[id];
    if (tensor.strides.empty() && !tensor.known_shape) return 0;
    std::int64_t bits = bits_of(kernel.storage[id]);
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
        if (tensor.strides.empty() || kernel.bound[tensor.strides[i]] != 0)
            bits = checked_multiply(bits, kernel.bound[tensor.shape[i]]);
    return ceil_quotient(bits, 8);
}

/// Returns the bytes between neighbours of a kernel's result in a tensor that it reads, or of its operands in the
/// result, at most a memory sector; 0 if they are neighbours there, too.
std::int64_t stride_bytes(const BoundKernel& kernel, MemoryClass prototype, TensorId id) {
    const Tensor& in = kernel.graph.tensors[id];
    if (!in.known_shape) return 0;
    const TensorId written = kernel.lowered.writes[0];
    const Tensor& out = kernel.graph.tensors[written];
    const bool into_rows = prototype == MemoryClass::transpose && (written == id || out.strides.empty());
    const std::int64_t stride = stride_between(in, into_rows ? in : out, kernel.bound, into_rows);
    return stride == 1 ? 0 : std::min(sector_bytes, checked_multiply(stride, kernel.element_bytes(id)));
}

MemoryClass class_for_layout(MemoryClass prototype, const BoundKernel& kernel) {
    const bool copies = prototype == MemoryClass::transpose && kernel.op().kind == OpKind::copy;
    if (!copies && prototype != MemoryClass::pointwise && prototype != MemoryClass::transcendental) return prototype;
    std::int64_t stride = 0;
    for (const TensorId input : kernel.lowered.reads) stride = std::max(stride, stride_bytes(kernel, prototype, input));
    if (stride == sector_bytes) return MemoryClass::transpose;
    return copies && stride > 0 ? MemoryClass::copy : prototype;
}

/// Returns the elements that a kernel looks up in its table `place`; nullopt if it reads the whole tensor.
std::optional<std::int64_t> looked_up(const BoundKernel& kernel, MemoryClass prototype, std::size_t place) {
    const Op& op = kernel.op();
    if (place == 0 && prototype == MemoryClass::gather && op.is(OpKind::embedding, OpKind::gather))
        return looked_up_elements(kernel.graph, op, kernel.bound);
    const auto pairs = op.integers(lookups_attribute);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
        if (pairs[i] == static_cast<std::int64_t>(kernel.lowered.reads[place]))
            return kernel.elements(static_cast<TensorId>(pairs[i + 1]));
    return std::nullopt;
}

struct Operands {
    TensorId largest = no_tensor;  ///< no_tensor if there is none
    std::int64_t results = 0;      ///< elements of the largest result
};

/// Sets class, traffic and elements.
Operands bind_traffic(MemoryShape& shape, const BoundKernel& kernel) {
    const auto& [graph, storage, weight_bytes, lowered, bound] = kernel;
    const MemoryClass cls = shape.cls;
    if (!lowered.writes.empty()) shape.cls = class_for_layout(cls, kernel);
    TensorId largest = lowered.writes.empty() ? no_tensor : lowered.writes[0];
    for (const TensorId id : lowered.writes) {
        if (!graph.tensors[id].known_shape) continue;
        const int bits = bits_of(lowered.written_type.value_or(storage[id]));
        const std::int64_t elements = kernel.elements(id);
        shape.write_bytes = checked_add(shape.write_bytes, ceil_quotient(checked_multiply(elements, bits), 8));
        shape.accesses = checked_add(shape.accesses, elements);
        shape.elements = std::max(shape.elements, elements);
    }
    const std::int64_t results = shape.elements;
    bool whole = true;  // operands are contiguous and of the result's type, or single values
    for (std::size_t i = 0; i < lowered.reads.size(); ++i) {
        const TensorId id = lowered.reads[i];
        const Tensor& tensor = graph.tensors[id];
        std::int64_t bytes = read_bytes(kernel, id);
        if (const auto needed = looked_up(kernel, cls, i)) {
            bytes = std::min(bytes, ceil_quotient(checked_multiply(*needed, bits_of(storage[id])), 8));
        } else if (tensor.known_shape && (bytes > shape.elements / 8 || !tensor.strides.empty())) {  // else too small
            const std::int64_t elements = kernel.elements(id);
            if (elements > shape.elements) {
                shape.elements = elements;
                largest = id;
            }
        }
        shape.accesses = checked_add(shape.accesses, bytes / kernel.element_bytes(id));
        // Sectors between the neighbours of every second or fourth element are read whole.
        const bool strides =
            !lowered.writes.empty() && (shape.cls == MemoryClass::pointwise || shape.cls == MemoryClass::copy ||
                                        shape.cls == MemoryClass::transcendental);
        if (const auto stride = strides ? stride_bytes(kernel, cls, id) : 0; stride > 0)
            bytes = checked_multiply(bytes / kernel.element_bytes(id), stride);
        constexpr std::int64_t single_value = 8;
        whole = whole && (bytes == shape.write_bytes || bytes <= single_value);
        shape.read_bytes = checked_add(shape.read_bytes, bytes);
    }
    shape.vectorized = shape.vectorized || whole;
    return {largest, results};
}

/// Returns the memory latencies in sequence of a reduction over other dimensions than the fastest: threads along the
/// fastest dimension, four outputs each if it allows vectors, and rows of threads that take four elements at a time.
/// From 1,024 elements on, blocks share an output. Source: PyTorch 2.5, Reduce.cuh (setReduceConfig).
int waits_of_strided_reduction(const BoundKernel& kernel, std::int64_t last_axis, std::int64_t length) {
    const Op& op = kernel.op();
    const Tensor& in = kernel.input(0);
    std::int64_t fastest = 1;
    for (auto i = static_cast<std::size_t>(last_axis) + 1; i < in.shape.size(); ++i)
        fastest = checked_multiply(fastest, kernel.bound[in.shape[i]]);
    const std::int64_t threads = fastest >= 128 && fastest % 4 == 0 ? 4 : 16;
    const std::int64_t steps = std::min<std::int64_t>(ceil_quotient(length, 4 * threads), 64);
    const bool with_index = op.outputs.size() > 1 || op.text("function").starts_with("arg");
    return static_cast<int>(ceil_quotient(steps * (with_index ? 7 : 3), 4));
}

/// A row is reduced to one of the results. With `generated` a compiler's kernel reduces it.
void bind_reduction(MemoryShape& shape, const BoundKernel& kernel, std::int64_t results, bool generated) {
    const Op& op = kernel.op();
    shape.rows = results;
    shape.row_length = std::max<std::int64_t>(1, shape.elements / results);
    const auto axes = op.integers("axes");
    const auto last = static_cast<std::int64_t>(kernel.input(0).shape.size()) - 1;
    const bool within = axes.empty() || std::ranges::count(axes, last) > 0;
    shape.vectorized = generated || !within || shape.row_length >= 512;
    if (!within && op.kind == OpKind::reduce && !generated)
        shape.waits += waits_of_strided_reduction(kernel, *std::ranges::max_element(axes), shape.row_length);
}

/// A row is a window.
void bind_pool(MemoryShape& shape, const Op& op) {
    shape.row_length = 1;
    for (const std::int64_t side : op.integers("kernel")) shape.row_length = checked_multiply(shape.row_length, side);
    shape.indexed = op.text("function") == "max";
}

void bind_resize(MemoryShape& shape, const BoundKernel& kernel, std::int64_t results) {
    const Tensor& out = kernel.graph.tensors[kernel.lowered.writes[0]];
    const auto plane = kernel.spatial(out);
    shape.row_length = checked_multiply(checked_multiply(plane[0], plane[1]), plane[2]);
    // Channels-last kernels use one thread per output (upsample_bilinear2d_nhwc_out_frame); nearest-neighbour
    // kernels also distribute the planes over threads (upsample_nearest2d_out_frame).
    const std::string_view function = kernel.op().text("function");
    const bool samples = function == "grid_sample";
    const bool walks = samples || (function != "nearest" && !is_channels_last(out, kernel.bound));
    shape.rows = walks ? results / shape.row_length : 0;
    if (!samples) return;
    // A thread computes one pixel of an image for all channels (grid_sampler_2d_kernel, GridSampler.cu).
    const std::int64_t images = kernel.dim(out, 0);
    shape.row_length = checked_multiply(shape.row_length, images);
    shape.rows = std::max<std::int64_t>(1, shape.rows / images);
}

/// A row shares its statistics, over all images in a batch norm. PyTorch's kernel for groups (RowwiseMomentsCUDAKernel)
/// reads 512 elements at a time, cuDNN's for channels (bn_fw_tr_1C11_kernel_NCHW) more, twice.
void bind_group_norm(MemoryShape& shape, const BoundKernel& kernel, TensorId largest) {
    const Op& op = kernel.op();
    const std::int64_t batch = op.kind == OpKind::batch_norm ? 1 : kernel.dim(kernel.input(0), 0);
    const bool grouped = op.kind == OpKind::group_norm;
    const std::int64_t groups = grouped ? op.integer("groups", 1) : kernel.dim(kernel.graph.tensors[largest], 1);
    shape.rows = std::max<std::int64_t>(1, checked_multiply(batch, groups));
    shape.row_length = std::max<std::int64_t>(1, shape.elements / shape.rows);
    shape.elements_per_wait = grouped ? 512 : 640;
}

/// A block scans 256 elements of a row at a time. Source: PyTorch 2.11, ScanUtils.cuh.
void bind_scan(MemoryShape& shape, const Op& op, int rank) {
    const std::int64_t axis = op.integer("axis", -1);
    if (axis == -1 || axis == rank - 1)
        shape.waits += static_cast<int>(ceil_quotient(checked_multiply(shape.row_length, 9), 1024));
}

/// Softmax and norms work on the last dimension or the given axis, batch norms on a plane.
void bind_rows(MemoryShape& shape, const BoundKernel& kernel, const Tensor& whole) {
    const Op& op = kernel.op();
    const int rank = static_cast<int>(whole.shape.size());
    const bool is_norm = op.is(OpKind::layer_norm, OpKind::rms_norm);
    const bool is_softmax = op.is(OpKind::softmax, OpKind::log_softmax);
    int axis = is_norm || is_softmax ? static_cast<int>(op.integer("axis", -1)) : -1;
    if (axis < 0) axis += rank;
    shape.row_length = kernel.dim(whole, axis);
    const auto extend = [&](int from, int until) {
        for (int i = from; i < until; ++i) shape.row_length = checked_multiply(shape.row_length, kernel.dim(whole, i));
    };
    if (is_norm) extend(axis + 1, rank);
    if (shape.cls == MemoryClass::batch_norm) extend(2, rank - 1);
    shape.rows = shape.elements / shape.row_length;
    if (op.kind == OpKind::cumulative) bind_scan(shape, op, rank);
}

/// The softmax between both products of an attention.
void bind_softmax(MemoryShape& shape, const BoundKernel& kernel) {
    kernels::AttentionShape whole;
    bind_dimensions(whole, kernel);
    shape.row_length = whole.kv_length;
    shape.rows = checked_multiply(checked_multiply(whole.batch, whole.heads), whole.q_length);
    shape.elements = checked_multiply(shape.rows, shape.row_length);
    shape.read_bytes = shape.write_bytes = checked_multiply(shape.elements, shape.element_bytes);
}

/// State update of a recurrence: reads the gates of one step and the cell's state, writes state and output.
void bind_state_update(MemoryShape& shape, const BoundKernel& kernel) {
    const RecurrentDimensions d = recurrent_dimensions(kernel.graph, kernel.op(), kernel.bound);
    shape.rows = d.batch;
    shape.row_length = checked_multiply(d.gates, d.hidden);
    shape.elements = checked_multiply(shape.rows, shape.row_length);
    const std::int64_t state_bytes = checked_multiply(checked_multiply(d.batch, d.hidden), shape.element_bytes);
    shape.read_bytes = checked_add(checked_multiply(shape.elements, shape.element_bytes), state_bytes);
    shape.write_bytes = checked_multiply(kernel.op().text("cell") == "lstm" ? 3 : 2, state_bytes);
}

}  // namespace

void bind_dimensions(MemoryShape& shape, const BoundKernel& kernel) {
    if (kernel.lowered.part == OperatorPart::softmax) return bind_softmax(shape, kernel);
    if (kernel.lowered.part == OperatorPart::state_update) return bind_state_update(shape, kernel);
    const MemoryClass prototype = shape.cls;
    const bool by_vectors = shape.vectorized;
    const auto [largest, results] = bind_traffic(shape, kernel);
    if (largest == no_tensor) return;
    shape.element_bytes = kernel.element_bytes(largest);
    if (const TensorId strided = kernel.lowered.strided_read; strided != no_tensor)
        shape.strided_elements = kernel.elements(strided);
    if ((prototype == MemoryClass::reduce || prototype == MemoryClass::pool) && results > 0) {
        bind_reduction(shape, kernel, results, by_vectors);
        if (prototype == MemoryClass::pool) bind_pool(shape, kernel.op());
    } else if (shape.cls == MemoryClass::resize) {
        bind_resize(shape, kernel, results);
    } else if (shape.cls == MemoryClass::group_norm && kernel.op().kind != OpKind::local_response_norm) {
        bind_group_norm(shape, kernel, largest);
    } else {
        bind_rows(shape, kernel, kernel.graph.tensors[largest]);
    }
}

}  // namespace ftax
