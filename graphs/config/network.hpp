#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ftax/graph_builder.hpp"
#include "graphs/config/transformer_config.hpp"

namespace ftax::config {

using Shape = std::vector<Expression>;

/// Appends the operators of a module's forward function in eager PyTorch, module by module, with their shapes.
/// Parameters are named after their modules; all parameters and activations have the same type.
class Network {
  public:
    Network(std::string name, DType dtype);

    /// Operators appended during its lifetime belong to a submodule, whose call is recorded.
    class [[nodiscard]] Module {
      public:
        Module(Network& network, std::string_view name, std::string_view type);
        ~Module() { network_.path_.resize(outer_); }
        Module(const Module&) = delete;
        Module& operator=(const Module&) = delete;

      private:
        Network& network_;
        std::size_t outer_;
    };

    [[nodiscard]] Expression number(std::int64_t value) { return pool().constant(value); }
    [[nodiscard]] Expression symbol(std::string_view name) { return pool().symbol(name); }
    [[nodiscard]] ExpressionPool& pool() { return builder_.graph().expressions; }
    [[nodiscard]] const Shape& shape(TensorId tensor) const { return builder_.shape(tensor); }
    [[nodiscard]] std::size_t operators() { return builder_.graph().ops.size(); }

    TensorId input(std::string_view name, Shape shape, DType dtype);
    TensorId activation_input(std::string_view name, Shape shape) { return input(name, std::move(shape), dtype_); }
    TensorId parameter(std::string_view name, Shape shape);

    /// Appends an operator with one result of the given shape and, unless stated, the type of its first input.
    TensorId apply(OpKind kind, std::string_view source, const std::vector<TensorId>& inputs, Shape shape,
                   std::vector<Attribute> attributes = {}, DType dtype = DType::unknown);
    /// An elementwise function; unless stated, the result has the shape and type of the first operand.
    TensorId map(std::string_view function, const std::vector<TensorId>& operands, std::optional<Shape> result = {},
                 DType dtype = DType::unknown);
    TensorId map_scalar(std::string_view function, TensorId operand, double scalar);
    TensorId cast(TensorId x, DType dtype);
    TensorId view(TensorId x, Shape shape) { return apply(OpKind::reshape, "aten::view", {x}, std::move(shape)); }
    /// A view with two axes exchanged.
    TensorId swap(TensorId x, std::size_t first, std::size_t second);
    /// A view of `length` entries along an axis.
    TensorId part(TensorId x, std::size_t axis, Expression length);
    TensorId concat(const std::vector<TensorId>& parts, std::size_t axis);
    TensorId reduce(std::string_view function, TensorId x, std::size_t axis, bool keep);
    TensorId softmax(TensorId x);
    TensorId fill(std::string_view source, Shape shape, DType dtype);
    TensorId copy(std::string_view source, TensorId x, Shape shape);
    TensorId best(TensorId x, std::int64_t count);  ///< topk along the last axis: the values
    /// Products of the last two dimensions.
    TensorId matmul(TensorId a, TensorId b, std::string_view source = "aten::matmul");
    TensorId expand(TensorId x, Shape shape) { return apply(OpKind::expand, "aten::expand", {x}, std::move(shape)); }
    /// The result of `build`, whose operators belong to a submodule.
    template <class Build>
    TensorId within(std::string_view name, std::string_view type, const Build& build) {
        const Module module(*this, name, type);
        return build();
    }

    TensorId linear(std::string_view name, TensorId x, std::int64_t width, bool bias);
    /// The same as addmm over a flattened input, the weight as [in, out].
    TensorId addmm(std::string_view name, TensorId x, std::int64_t width, bool bias);
    TensorId linear_with(TensorId x, TensorId weight, TensorId bias = no_tensor);
    /// Layer norm, or x / sqrt(mean(x²) + ε) · w in f32. Source: transformers, LlamaRMSNorm, Gemma2RMSNorm.
    TensorId norm(std::string_view name, TensorId x, NormKind kind);
    TensorId lookup(TensorId table, TensorId indices);

    [[nodiscard]] DType dtype() const { return dtype_; }
    [[nodiscard]] Graph finish(const std::vector<TensorId>& outputs) { return builder_.finish(outputs); }

  private:
    [[nodiscard]] std::string path_to(std::string_view name) const;

    GraphBuilder builder_;
    DType dtype_;
    std::string path_;
};

}  // namespace ftax::config
