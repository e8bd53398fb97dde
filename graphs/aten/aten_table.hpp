#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphs/aten/aten_call.hpp"
#include "graphs/ir/shape_rules.hpp"

/// Shape rules that data/aten_operators.tsv names.
namespace ftax::aten_shapes {

using Shape = Dims;
using Outputs = std::vector<AtenOutput>;

class Call : public ShapeRules<Call> {
  public:
    Call(Graph& graph, const AtenCall& call) : graph_(graph), call_(call) {}

    [[nodiscard]] ExpressionPool& pool() const { return graph_.expressions; }
    [[nodiscard]] DimensionMath math() const { return DimensionMath(pool()); }
    [[nodiscard]] const AtenCall& call() const { return call_; }
    [[nodiscard]] std::string_view name() const;  ///< "conv2d"
    using ShapeRules<Call>::fail;
    [[noreturn]] void fail(std::string_view what) const { call_.fail(what); }

    /// Tensors the call reads, absent ones left out; of one argument, or of all.
    [[nodiscard]] std::vector<const Tensor*> tensors(std::string_view argument = {}) const;
    [[nodiscard]] const Tensor& first() const;  ///< fails when the call reads no tensor
    [[nodiscard]] const Tensor& tensor(std::string_view argument) const;
    [[nodiscard]] const Tensor& output() const;  ///< the first; fails when the call has none
    [[nodiscard]] bool has(std::string_view argument) const { return call_.find(argument) != nullptr; }

    /// Integers of an argument as expressions; empty when it is absent.
    [[nodiscard]] Shape sizes(std::string_view argument) const;
    [[nodiscard]] std::int64_t integer(std::string_view argument, std::int64_t fallback) const {
        return call_.integer(argument, fallback);
    }
    /// One value per spatial dimension: ATen takes a single number for all of them, or none for the default.
    [[nodiscard]] Shape per_dimension(std::string_view argument, std::size_t dimensions, const Shape& fallback) const;
    /// The windows of the call along its spatial dimensions. `stride` is the default.
    [[nodiscard]] std::vector<WindowAxis> windows(const Shape& kernel, const Shape& stride) const;
    [[nodiscard]] std::vector<WindowAxis> conv_windows() const;  ///< from the argument `weight`
    [[nodiscard]] std::vector<WindowAxis> pool_windows() const;  ///< from the argument `kernel_size`
    [[nodiscard]] std::size_t spatial_dimensions() const;        ///< by the name: 3 of "max_pool3d", else 2
    /// `axis` counted from the front. Fails outside [-rank, rank).
    [[nodiscard]] std::size_t axis(std::int64_t axis, std::size_t rank) const {
        return static_cast<std::size_t>(call_.axis(axis, rank));
    }
    [[nodiscard]] std::size_t axis(std::string_view argument, std::int64_t fallback, std::size_t rank) const {
        return axis(integer(argument, fallback), rank);
    }
    /// All axes, two of them exchanged: those that the call names, or the last two.
    [[nodiscard]] std::vector<std::int64_t> swapped(std::size_t rank) const;
    /// What a reduction goes over: the axes of the argument `dim`, or all where it is absent or empty.
    [[nodiscard]] std::vector<std::int64_t> reduced_axes() const;
    /// Shape of the first tensor with one of its axes; fails when it is a scalar.
    struct Along {
        Shape shape;
        std::size_t axis;
    };
    [[nodiscard]] Along along(std::string_view argument, std::int64_t fallback = 0) const;
    /// One output of that shape and the type of the first tensor.
    [[nodiscard]] Outputs with_shape(Shape shape) const { return {{first().dtype, std::move(shape)}}; }
    /// Element type that the argument `dtype` names, or `fallback`.
    [[nodiscard]] DType dtype(DType fallback) const;

    [[nodiscard]] Expression constant(std::int64_t value) const { return pool().constant(value); }
    [[nodiscard]] bool is(Expression e, std::int64_t value) const { return pool().constant_value(e) == value; }

  private:
    Graph& graph_;
    const AtenCall& call_;
};

/// Where a dimension is erased or inserted.
[[nodiscard]] inline Shape::iterator place(Shape& shape, std::size_t axis) {
    return shape.begin() + static_cast<std::ptrdiff_t>(axis);
}

/// Element type that scalars and tensors of the given types promote to.
[[nodiscard]] DType promoted(const Call& c);

using Inference = Outputs(const Call&);
/// Turns the shape of the first tensor into that of the only output, which has its element type.
using Edit = void(const Call&, Shape&);

// In the order of aten_shapes_elementwise.cpp, aten_shapes_layers.cpp and aten_shapes_movement.cpp.
#define FTAX_ATEN_INFERENCES                                                                                           \
    same, same_cast, same_float, pointwise, division, where, convert, fill, arange, eye, reduce, extremum, moments,    \
        sort, histogram, topk, polar, outer, conv, linear, matmul, grouped_matmul, matmul_added, einsum, attention,    \
        same_with_weights, recurrent, recurrent_cell, tensordot, differences, normalized, pool, adaptive_pool, resize, \
        grid_sample, fft, unfold_windows, pairwise_distance, view, flatten, movedim, broadcast_tensors, meshgrid,      \
        diagonal, chunk, split, tensor_split, unbind, concat, stack, repeat_interleave, embedding, shape_of_other,     \
        index, one_hot, real_view, complex_view
#define FTAX_ATEN_EDITS                                                                                            \
    halved, unflatten, squeeze, unsqueeze, permute, transpose, expand, select, slice, narrow, unfold, pad, repeat, \
        pixel_shuffle, index_select
Inference FTAX_ATEN_INFERENCES;
Edit FTAX_ATEN_EDITS;

}  // namespace ftax::aten_shapes

/// Attributes of canonical operators, read from the arguments of ATen calls; data/aten_operators.tsv names them.
namespace ftax::aten_attributes {

using Integers = std::vector<std::int64_t>;

/// Context of a reader: the call, its graph, and the destination of the attributes.
struct Context : aten_shapes::Call {
    std::vector<Attribute>& attributes;

    void add(std::string name, AttributeValue value) const {
        attributes.push_back({std::move(name), std::move(value)});
    }
    [[nodiscard]] std::size_t input_rank() const { return first().shape.size(); }
};

using Reader = void(const Context&);
#define FTAX_ATEN_READERS                                                                                      \
    no_attributes, read_conv, read_pool, read_dim, read_first_dim, read_joined_dim, read_squeezed, read_slice, \
        read_select, read_roll, read_normalized, read_training, read_groups, read_reduce, read_permute,        \
        read_transpose, read_causal, read_recurrent, read_fft, read_stft, read_experts
Reader FTAX_ATEN_READERS;

}  // namespace ftax::aten_attributes

namespace ftax {

/// Appends several canonical operators for a call (aten_decompositions.cpp). Returns false for unsupported forms of it.
using AppendFunction = bool(Graph& graph, const AtenCall& call);

/// Maps ATen operators, in-place variants included, to a canonical one, or to several.
struct AtenRow {
    std::string_view name;                    ///< without the in-place suffix `_`; a table row may list several
    OpKind kind;                              ///< custom: none; also used for forms that append() does not support
    aten_shapes::Inference* shape = nullptr;  ///< of its results
    aten_shapes::Edit* edit = nullptr;        ///< in place of the former
    aten_attributes::Reader* attributes = aten_attributes::no_attributes;
    std::string_view operands{};       ///< argument names in canonical order; empty: all tensors as they come
    AppendFunction* append = nullptr;  ///< for operators that map to several canonical ones
    std::optional<DType> type{};       ///< of the first result, in place of what its rule says
    std::string_view function{};       ///< attribute "function"; empty if the kind is sufficient
};

/// Returns the row of an operator, given as "aten::conv2d" or "aten::relu_"; nullptr if there is none.
[[nodiscard]] const AtenRow* find_aten_row(std::string_view target);

/// Appends one canonical operator for an ATen call; the second and later ones of a call get names of their own.
void append_op(Graph& graph, const AtenCall& call, OpKind kind, std::vector<TensorId> inputs,
               std::vector<TensorId> outputs, std::vector<Attribute> attributes = {});

#define FTAX_ATEN_DECOMPOSITIONS                                                                             \
    append_logsumexp, append_cosine_similarity, append_inner_tensor, append_packed_linear, append_tensordot, \
        append_einsum, append_native_attention, append_encoder_layer, append_loss, append_cross_entropy,     \
        append_triplet_loss
AppendFunction FTAX_ATEN_DECOMPOSITIONS;

/// Indexing with a mask first counts the set elements on the device, and the host waits for the result.
void append_mask_lookup(Graph& graph, const AtenCall& call);

}  // namespace ftax
