#pragma once

#include <string_view>
#include <vector>

#include "graphs/aten/aten_shapes.hpp"

/// Shape rules that the table in aten_shapes.cpp names.
namespace ftax::aten_shapes {

using Shape = std::vector<Expression>;
using Outputs = std::vector<AtenOutput>;

/// One call, as a rule sees it.
class Call {
  public:
    Call(Graph& graph, const AtenCall& call) : graph_(graph), call_(call) {}

    [[nodiscard]] ExpressionPool& pool() const { return graph_.expressions; }
    [[nodiscard]] const AtenCall& call() const { return call_; }
    [[nodiscard]] std::string_view name() const;  ///< "conv2d"
    [[noreturn]] void fail(std::string_view what) const;

    /// Tensors the call reads, absent ones left out; of one argument, or of all.
    [[nodiscard]] std::vector<const Tensor*> tensors() const;
    [[nodiscard]] std::vector<const Tensor*> tensors(std::string_view argument) const;
    [[nodiscard]] const Tensor& first() const;  ///< fails when the call reads no tensor
    [[nodiscard]] const Tensor& tensor(std::string_view argument) const;
    [[nodiscard]] bool has(std::string_view argument) const { return call_.find(argument) != nullptr; }

    /// Integers of an argument as expressions; empty when it is absent.
    [[nodiscard]] Shape sizes(std::string_view argument) const;
    [[nodiscard]] std::int64_t integer(std::string_view argument, std::int64_t fallback) const {
        return call_.integer(argument, fallback);
    }
    /// `axis` counted from the front. Fails outside [-rank, rank).
    [[nodiscard]] std::size_t axis(std::int64_t axis, std::size_t rank) const;
    [[nodiscard]] std::size_t axis(std::string_view argument, std::int64_t fallback, std::size_t rank) const {
        return axis(integer(argument, fallback), rank);
    }
    /// Element type that the argument `dtype` names, or `fallback`.
    [[nodiscard]] DType dtype(DType fallback) const;

    [[nodiscard]] Expression constant(std::int64_t value) const { return pool().constant(value); }
    [[nodiscard]] bool is(Expression e, std::int64_t value) const { return pool().constant_value(e) == value; }
    [[nodiscard]] Expression product(const Shape& shape, std::size_t begin, std::size_t end) const;
    [[nodiscard]] Shape broadcast(const Shape& a, const Shape& b) const;

  private:
    Graph& graph_;
    const AtenCall& call_;
};

/// Element type that scalars and tensors of the given types promote to.
[[nodiscard]] DType promoted(const Call& c);

using Rule = Outputs (*)(const Call&);

// aten_shapes_elementwise.cpp
Outputs same(const Call& c);          ///< like the first tensor
Outputs same_boolean(const Call& c);  ///< likewise, booleans
Outputs same_cast(const Call& c);     ///< likewise, of the type that `dtype` names
Outputs same_float(const Call& c);    ///< likewise, integers become f32
Outputs pointwise(const Call& c);
Outputs division(const Call& c);
Outputs comparison(const Call& c);
Outputs where(const Call& c);
Outputs convert(const Call& c);
Outputs convert_like(const Call& c);
Outputs fill(const Call& c);
Outputs fill_float(const Call& c);
Outputs arange(const Call& c);
Outputs eye(const Call& c);
Outputs reduce(const Call& c);
Outputs arg_reduce(const Call& c);
Outputs any_reduce(const Call& c);
Outputs extremum(const Call& c);
Outputs moments(const Call& c);
Outputs sort(const Call& c);
Outputs histogram(const Call& c);
Outputs topk(const Call& c);
Outputs polar(const Call& c);
Outputs outer(const Call& c);
Outputs halved(const Call& c);  ///< of the two halves along a dimension one gates the other

// aten_shapes_layers.cpp
Outputs conv(const Call& c);
Outputs conv_transpose(const Call& c);
Outputs linear(const Call& c);
Outputs matmul(const Call& c);
Outputs grouped_matmul(const Call& c);
Outputs matmul_added(const Call& c);
Outputs einsum(const Call& c);
Outputs attention(const Call& c);
Outputs same_with_weights(const Call& c);  ///< like the first tensor; weights of the attention, which nobody asks for
Outputs recurrent(const Call& c);
Outputs recurrent_cell(const Call& c);
Outputs integer_matmul(const Call& c);
Outputs tensordot(const Call& c);
Outputs differences(const Call& c);
Outputs normalized(const Call& c);
Outputs pool(const Call& c);
Outputs pool_with_indices(const Call& c);
Outputs adaptive_pool(const Call& c);
Outputs resize(const Call& c);
Outputs grid_sample(const Call& c);
Outputs fft(const Call& c);
Outputs unfold_windows(const Call& c);
Outputs pairwise_distance(const Call& c);

// aten_shapes_movement.cpp
Outputs view(const Call& c);
Outputs view_like(const Call& c);
Outputs flatten(const Call& c);
Outputs unflatten(const Call& c);
Outputs squeeze(const Call& c);
Outputs unsqueeze(const Call& c);
Outputs permute(const Call& c);
Outputs transpose(const Call& c);
Outputs matrix_transpose(const Call& c);
Outputs movedim(const Call& c);
Outputs expand(const Call& c);
Outputs broadcast_tensors(const Call& c);
Outputs meshgrid(const Call& c);
Outputs select(const Call& c);
Outputs slice(const Call& c);
Outputs narrow(const Call& c);
Outputs unfold(const Call& c);
Outputs diagonal(const Call& c);
Outputs chunk(const Call& c);
Outputs split(const Call& c);
Outputs tensor_split(const Call& c);
Outputs unbind(const Call& c);
Outputs concat(const Call& c);
Outputs stack(const Call& c);
Outputs pad(const Call& c);
Outputs repeat(const Call& c);
Outputs repeat_interleave(const Call& c);
Outputs pixel_shuffle(const Call& c);
Outputs pixel_unshuffle(const Call& c);
Outputs embedding(const Call& c);
Outputs gather(const Call& c);
Outputs index(const Call& c);
Outputs index_select(const Call& c);
Outputs one_hot(const Call& c);
Outputs real_view(const Call& c);
Outputs complex_view(const Call& c);

}  // namespace ftax::aten_shapes
