#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Window of a convolution or pooling; each value applies to all spatial dimensions.
struct Window {
    std::int64_t kernel = 1;
    std::int64_t stride = 1;
    std::int64_t pad = 0;
    std::int64_t dilation = 1;
    std::int64_t groups = 1;
};

/// Builds a Graph operator by operator, like a model's forward function, and infers the shapes.
///
///     GraphBuilder net("tiny");
///     auto x = net.input("x", {"batch", "3", "32", "32"});
///     auto y = net.relu(net.batch_norm(net.conv(x, 16, {.kernel = 3, .pad = 1})));
///     Graph graph = net.finish({net.linear(net.flatten(net.global_average_pool(y), 1), 10)});
///
/// Dimensions are textual expressions (see ExpressionPool::parse). Methods throw Error{model} naming an operator whose
/// inputs do not match. Module calls are recorded as in PyTorch: one per layer.
class GraphBuilder {
  public:
    explicit GraphBuilder(std::string name);

    TensorId input(std::string_view name, const std::vector<std::string>& shape, DType dtype = DType::f32);
    TensorId weight(std::string_view name, const std::vector<std::string>& shape, DType dtype = DType::f32);

    TensorId conv(TensorId x, std::int64_t out_channels, Window window = {}, bool bias = false);  ///< x[N,C,spatial…]
    TensorId linear(TensorId x, std::int64_t out_features, bool bias = true);  ///< x[…,k] to […,out_features]
    TensorId matmul(TensorId a, TensorId b);  ///< a[…,m,k], b[…,k,n] to […,m,n]; leading dimensions broadcast
    TensorId batch_norm(TensorId x);          ///< x[N,C,…]
    TensorId layer_norm(TensorId x);          ///< over the last dimension
    TensorId softmax(TensorId x, std::int64_t axis = -1);
    TensorId embedding(TensorId indices, std::int64_t rows, std::int64_t width);  ///< indices[…] to f32[…,width]
    TensorId max_pool(TensorId x, Window window);                                 ///< x[N,C,spatial…]
    TensorId average_pool(TensorId x, Window window);                             ///< x[N,C,spatial…]
    TensorId global_average_pool(TensorId x);                                     ///< x[N,C,spatial…] to [N,C,1…]
    /// Applies an elementwise function ("relu", "gelu", "add", …) to inputs that broadcast.
    TensorId pointwise(std::string_view function, const std::vector<TensorId>& inputs);
    TensorId relu(TensorId x) { return pointwise("relu", {x}); }
    TensorId add(TensorId a, TensorId b) { return pointwise("add", {a, b}); }
    TensorId concat(const std::vector<TensorId>& inputs, std::int64_t axis);
    TensorId reshape(TensorId x, const std::vector<std::string>& shape);
    TensorId flatten(TensorId x, std::int64_t first_axis);  ///< merges `first_axis` and all later dimensions
    TensorId transpose(TensorId x, const std::vector<std::int64_t>& perm);

    /// Appends an operator with explicit output types; the other methods are written in terms of it.
    std::vector<TensorId> op(OpKind kind, std::string_view source, const std::vector<TensorId>& inputs,
                             std::vector<Attribute> attributes, std::vector<Tensor> outputs);

    [[nodiscard]] Graph& graph() noexcept { return graph_; }
    [[nodiscard]] const std::vector<Expression>& shape(TensorId tensor) const { return graph_.tensors[tensor].shape; }
    /// Sets the outputs and returns the graph; the builder is empty afterwards.
    Graph finish(const std::vector<TensorId>& outputs);

  private:
    TensorId pool(TensorId x, const Window& window, bool maximum);

    Graph graph_;
};

}  // namespace ftax
