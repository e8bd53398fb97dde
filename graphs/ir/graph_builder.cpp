#include "ftax/graph_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graphs/base/throw_error.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/ir/shape_rules.hpp"

namespace ftax {
namespace {

/// Elementwise functions that PyTorch code usually calls through a module of their own, in torch.nn.modules.activation.
constexpr std::pair<std::string_view, std::string_view> activation_modules[]{
    {"relu", "ReLU"},       {"relu6", "ReLU6"}, {"gelu", "GELU"},           {"silu", "SiLU"},
    {"sigmoid", "Sigmoid"}, {"tanh", "Tanh"},   {"hardswish", "Hardswish"}, {"hardsigmoid", "Hardsigmoid"}};

/// The layer that is being appended: its name for messages, and the shape rules that need the graph.
class Layer : public ShapeRules<Layer, true> {
  public:
    Layer(Graph& graph, std::string_view kind)
        : graph_(graph), name_(std::string(kind) + "_" + std::to_string(graph.ops.size())) {}

    [[nodiscard]] const std::string& name() const { return name_; }

    using ShapeRules<Layer, true>::fail;
    [[noreturn]] void fail(std::string_view what) const {
        throw_error(ErrorCode::model, "{}: {}: {}", graph_.name, name_, what);
    }

    [[nodiscard]] const Tensor& tensor(TensorId id) const {
        if (id >= graph_.tensors.size()) fail("an input is not a tensor of this graph");
        return graph_.tensors[id];
    }

    /// Shape of an input with at least `rank` dimensions.
    [[nodiscard]] std::vector<Expression> shape_of(TensorId id, std::size_t rank = 0) const {
        const Tensor& t = tensor(id);
        if (t.shape.size() < rank) fail("needs at least {} dimensions, not {}", rank, math().print(t.shape));
        return t.shape;
    }

    [[nodiscard]] DimensionMath math() const { return DimensionMath(graph_.expressions); }

    /// Sets the spatial dimensions of [N, C, spatial…] to what a window that slides over them gives.
    void slide(Dims& shape, const Window& w) const {
        if (w.pad < 0) fail("pad {}", w.pad);
        const Expression pad = math().constant(w.pad);
        const WindowAxis window{math().constant(w.kernel), math().constant(w.stride), math().constant(w.dilation), pad,
                                pad};
        for (std::size_t i = 2; i < shape.size(); ++i) shape[i] = window_count(shape[i], window);
    }

    Tensor output(Dims shape, DType dtype) const { return {.name = name_, .dtype = dtype, .shape = std::move(shape)}; }

    Tensor like(TensorId x, Dims shape) const { return output(std::move(shape), tensor(x).dtype); }

    /// Appends a weight.
    TensorId parameter(std::string_view suffix, Dims shape, DType dtype) const {
        Tensor result = output(std::move(shape), dtype);
        result.name = fmt::format("{}.{}", name_, suffix);
        result.role = TensorRole::weight;
        return append(graph_, std::move(result));
    }

    void record_module(std::string_view type) const { graph_.module_calls.push_back({name_, std::string(type)}); }

  private:
    Graph& graph_;
    std::string name_;
};

std::vector<Attribute> window_attributes(const Window& w, std::size_t dimensions, bool with_kernel) {
    const auto all = [&](std::int64_t value) { return std::vector<std::int64_t>(dimensions, value); };
    std::vector<Attribute> result;
    if (with_kernel) result.push_back({"kernel", all(w.kernel)});
    result.insert(result.end(), {{"stride", all(w.stride)}, {"pad_begin", all(w.pad)}, {"pad_end", all(w.pad)}});
    return result;
}

}  // namespace

GraphBuilder::GraphBuilder(std::string name) {
    graph_.name = std::move(name);
    graph_.format = "builder";
    graph_.module_calls.push_back({"", graph_.name});
}

TensorId GraphBuilder::input(std::string_view name, const std::vector<std::string>& shape, DType dtype) {
    const TensorId id = weight(name, shape, dtype);
    graph_.tensors[id].role = TensorRole::input;
    graph_.inputs.push_back(id);
    return id;
}

TensorId GraphBuilder::weight(std::string_view name, const std::vector<std::string>& shape, DType dtype) {
    Tensor tensor{.name = std::string(name), .dtype = dtype, .role = TensorRole::weight};
    for (const std::string& dim : shape) tensor.shape.push_back(graph_.expressions.parse(dim));
    return append(graph_, std::move(tensor));
}

TensorId GraphBuilder::conv(TensorId x, std::int64_t out_channels, Window window, bool bias) {
    const Layer layer(graph_, "conv");
    ExpressionPool& pool = graph_.expressions;
    std::vector<Expression> shape = layer.shape_of(x, 3);
    const DType dtype = layer.tensor(x).dtype;
    const auto channels = pool.constant_value(shape[1]);
    if (!channels) layer.fail("the number of input channels must be a number");
    if (out_channels < 1) layer.fail("{} output channels", out_channels);
    if (window.groups < 1 || *channels % window.groups != 0 || out_channels % window.groups != 0)
        layer.fail("{} groups do not divide {} input and {} output channels", window.groups, *channels, out_channels);
    const Expression out = pool.constant(out_channels);
    std::vector<Expression> filter(shape.size(), pool.constant(window.kernel));
    filter[0] = out;
    filter[1] = pool.constant(*channels / window.groups);
    shape[1] = out;
    layer.slide(shape, window);

    const std::size_t dimensions = shape.size() - 2;
    std::vector<Attribute> attributes = window_attributes(window, dimensions, false);
    attributes.push_back({"dilation", std::vector<std::int64_t>(dimensions, window.dilation)});
    attributes.push_back({"groups", window.groups});
    std::vector<TensorId> inputs{x, layer.parameter("weight", filter, dtype)};
    if (bias) inputs.push_back(layer.parameter("bias", {out}, dtype));
    layer.record_module(fmt::format("torch.nn.modules.conv.Conv{}d", dimensions));
    return op(OpKind::conv, fmt::format("aten::conv{}d", dimensions), inputs, std::move(attributes),
              {layer.output(std::move(shape), dtype)})[0];
}

TensorId GraphBuilder::linear(TensorId x, std::int64_t out_features, bool bias) {
    const Layer layer(graph_, "linear");
    std::vector<Expression> shape = layer.shape_of(x, 1);
    const DType dtype = layer.tensor(x).dtype;
    if (out_features < 1) layer.fail("{} output features", out_features);
    const Expression out = graph_.expressions.constant(out_features);
    std::vector<TensorId> inputs{x, layer.parameter("weight", {out, shape.back()}, dtype)};
    if (bias) inputs.push_back(layer.parameter("bias", {out}, dtype));
    shape.back() = out;
    layer.record_module("torch.nn.modules.linear.Linear");
    return op(OpKind::linear, "aten::linear", inputs, {}, {layer.output(std::move(shape), dtype)})[0];
}

TensorId GraphBuilder::matmul(TensorId a, TensorId b) {
    const Layer layer(graph_, "matmul");
    const Tensor product = layer.like(a, layer.multiplied(layer.shape_of(a, 2), layer.shape_of(b, 2)));
    return op(OpKind::matmul, "aten::matmul", {a, b}, {}, {product})[0];
}

TensorId GraphBuilder::batch_norm(TensorId x) {
    const Layer layer(graph_, "batch_norm");
    const std::vector<Expression> shape = layer.shape_of(x, 2);
    const DType dtype = layer.tensor(x).dtype;
    std::vector<TensorId> inputs{x};
    for (const std::string_view parameter : {"weight", "bias", "running_mean", "running_var"})
        inputs.push_back(layer.parameter(parameter, {shape[1]}, dtype));
    const std::size_t dimensions = std::max<std::size_t>(shape.size() - 2, 1);
    layer.record_module(fmt::format("torch.nn.modules.batchnorm.BatchNorm{}d", dimensions));
    return op(OpKind::batch_norm, "aten::batch_norm", inputs, {}, {layer.output(shape, dtype)})[0];
}

TensorId GraphBuilder::layer_norm(TensorId x) {
    const Layer layer(graph_, "layer_norm");
    const std::vector<Expression> shape = layer.shape_of(x, 1);
    const DType dtype = layer.tensor(x).dtype;
    std::vector<TensorId> inputs{x};
    for (const std::string_view parameter : {"weight", "bias"})
        inputs.push_back(layer.parameter(parameter, {shape.back()}, dtype));
    layer.record_module("torch.nn.modules.normalization.LayerNorm");
    return op(OpKind::layer_norm, "aten::layer_norm", inputs, {{"axis", static_cast<std::int64_t>(shape.size()) - 1}},
              {layer.output(shape, dtype)})[0];
}

TensorId GraphBuilder::softmax(TensorId x, std::int64_t axis) {
    const Layer layer(graph_, "softmax");
    const std::vector<Expression> shape = layer.shape_of(x, 1);
    const auto position = static_cast<std::int64_t>(layer.axis(axis, shape.size()));
    return op(OpKind::softmax, "aten::softmax", {x}, {{"axis", position}}, {layer.like(x, shape)})[0];
}

TensorId GraphBuilder::embedding(TensorId indices, std::int64_t rows, std::int64_t width) {
    const Layer layer(graph_, "embedding");
    if (rows < 1 || width < 1) layer.fail("a table of {} rows and {} columns", rows, width);
    if (is_float(layer.tensor(indices).dtype)) layer.fail("indices must be integers");
    std::vector<Expression> shape = layer.shape_of(indices);
    const Expression columns = graph_.expressions.constant(width);
    const TensorId table = layer.parameter("weight", {graph_.expressions.constant(rows), columns}, DType::f32);
    shape.push_back(columns);
    layer.record_module("torch.nn.modules.sparse.Embedding");
    return op(OpKind::embedding, "aten::embedding", {table, indices}, {},
              {layer.output(std::move(shape), DType::f32)})[0];
}

TensorId GraphBuilder::pool(TensorId x, const Window& window, bool maximum) {
    const Layer layer(graph_, maximum ? "max_pool" : "average_pool");
    std::vector<Expression> shape = layer.shape_of(x, 3);
    const std::size_t dimensions = shape.size() - 2;
    layer.slide(shape, window);
    std::vector<Attribute> attributes = window_attributes(window, dimensions, true);
    attributes.insert(attributes.begin(), {"function", std::string(maximum ? "max" : "average")});
    layer.record_module(fmt::format("torch.nn.modules.pooling.{}Pool{}d", maximum ? "Max" : "Avg", dimensions));
    return op(OpKind::pool, fmt::format("aten::{}_pool{}d", maximum ? "max" : "avg", dimensions), {x},
              std::move(attributes), {layer.like(x, std::move(shape))})[0];
}

TensorId GraphBuilder::max_pool(TensorId x, Window window) {
    return pool(x, window, true);
}
TensorId GraphBuilder::average_pool(TensorId x, Window window) {
    return pool(x, window, false);
}

TensorId GraphBuilder::global_average_pool(TensorId x) {
    const Layer layer(graph_, "global_average_pool");
    std::vector<Expression> shape = layer.shape_of(x, 3);
    std::fill(shape.begin() + 2, shape.end(), graph_.expressions.constant(1));
    const std::size_t dimensions = shape.size() - 2;
    layer.record_module(fmt::format("torch.nn.modules.pooling.AdaptiveAvgPool{}d", dimensions));
    return op(OpKind::global_pool, fmt::format("aten::adaptive_avg_pool{}d", dimensions), {x},
              {{"function", std::string("average")}}, {layer.like(x, std::move(shape))})[0];
}

TensorId GraphBuilder::pointwise(std::string_view function, const std::vector<TensorId>& inputs) {
    const Layer layer(graph_, function);
    if (inputs.empty()) layer.fail("an elementwise function needs an input");
    std::vector<Expression> shape = layer.shape_of(inputs[0]);
    DType dtype = layer.tensor(inputs[0]).dtype;
    for (const TensorId input : inputs) {
        shape = layer.broadcast(shape, layer.shape_of(input));
        if (!is_float(dtype)) dtype = layer.tensor(input).dtype;
    }
    for (const auto& [name, type] : activation_modules)
        if (name == function) layer.record_module(fmt::format("torch.nn.modules.activation.{}", type));
    return op(OpKind::pointwise, fmt::format("aten::{}", function), inputs, {{"function", std::string(function)}},
              {layer.output(std::move(shape), dtype)})[0];
}

TensorId GraphBuilder::concat(const std::vector<TensorId>& inputs, std::int64_t axis) {
    const Layer layer(graph_, "concat");
    if (inputs.empty()) layer.fail("nothing to join");
    const std::size_t position = layer.axis(axis, layer.shape_of(inputs[0]).size());
    const auto shape_of = [&](TensorId input) -> const Dims* { return &layer.tensor(input).shape; };
    Dims shape = layer.joined(mapped(inputs, shape_of), position);
    return op(OpKind::concat, "aten::cat", inputs, {{"axis", static_cast<std::int64_t>(position)}},
              {layer.like(inputs[0], std::move(shape))})[0];
}

TensorId GraphBuilder::reshape(TensorId x, const std::vector<std::string>& shape) {
    const Layer layer(graph_, "reshape");
    Dims wanted = mapped(shape, [&](const std::string& dim) { return graph_.expressions.parse(dim); });
    const Tensor result = layer.like(x, layer.reshaped(layer.shape_of(x), std::move(wanted)));
    return op(OpKind::reshape, "aten::view", {x}, {}, {result})[0];
}

TensorId GraphBuilder::flatten(TensorId x, std::int64_t first_axis) {
    const Layer layer(graph_, "flatten");
    std::vector<Expression> shape = layer.shape_of(x, 1);
    shape = layer.flattened(shape, layer.axis(first_axis, shape.size()), shape.size());
    return op(OpKind::reshape, "aten::flatten", {x}, {}, {layer.like(x, std::move(shape))})[0];
}

TensorId GraphBuilder::transpose(TensorId x, const std::vector<std::int64_t>& perm) {
    const Layer layer(graph_, "transpose");
    Dims permuted = layer.permuted(layer.shape_of(x), perm);
    return op(OpKind::transpose, "aten::permute", {x}, {{"perm", perm}}, {layer.like(x, std::move(permuted))})[0];
}

std::vector<TensorId> GraphBuilder::op(OpKind kind, std::string_view source, const std::vector<TensorId>& inputs,
                                       std::vector<Attribute> attributes, std::vector<Tensor> outputs) {
    const Layer layer(graph_, name_of(kind));
    for (const TensorId input : present(inputs)) static_cast<void>(layer.tensor(input));
    const auto id = static_cast<OpId>(graph_.ops.size());
    std::vector<TensorId> ids;
    for (Tensor& output : outputs) {
        const TensorId added = append(graph_, std::move(output));
        Tensor& tensor = graph_.tensors[added];
        tensor.producer = id;
        if (tensor.name.empty())
            tensor.name = ids.empty() ? layer.name() : fmt::format("{}.{}", layer.name(), ids.size());
        ids.push_back(added);
    }
    const std::string name = ids.empty() ? layer.name() : graph_.tensors[ids[0]].name;
    // A layer records its module call just before its operator.
    const bool is_layer = !graph_.module_calls.empty() && graph_.module_calls.back().path == name;
    graph_.ops.push_back(
        {kind, name, std::string(source), is_layer ? name : std::string(), inputs, ids, std::move(attributes)});
    return ids;
}

Graph GraphBuilder::finish(const std::vector<TensorId>& outputs) {
    for (const TensorId output : outputs) static_cast<void>(Layer(graph_, "output").tensor(output));
    graph_.outputs = outputs;
    return std::exchange(graph_, {});
}

}  // namespace ftax
