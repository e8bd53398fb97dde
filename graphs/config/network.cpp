#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ftax/text_graph.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/config/transformer.hpp"
#include "graphs/ir/shape_rules.hpp"
#include "graphs/ir/splice.hpp"

namespace ftax::config {

std::string filled_in(std::string_view text, const ShapeBindings& numbers) {
    std::string filled;
    for (std::size_t mark = 0; (mark = text.find_first_of("$>")) != std::string_view::npos;) {
        filled += text.substr(0, mark);
        const bool ends = text[mark] == '>';
        text.remove_prefix(mark + 1);
        if (ends) continue;
        const std::size_t end = std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), text.size());
        const auto found = numbers.find(std::string(text.substr(0, end)));
        if (found == numbers.end()) throw_error(ErrorCode::model, "it has no field {}", text.substr(0, end));
        const std::int64_t number = found->second;
        const bool optional = text.substr(end).starts_with('<');
        if (!optional) filled += std::to_string(number);
        text.remove_prefix(!optional ? end : number == 0 ? text.find('>') + 1 : end + 1);
    }
    return filled.append(text);
}

Network::Module::Module(Network& network, std::string_view name, std::string_view type)
    : network_(network), outer_(network.path_.size()) {
    network_.path_ = network_.path_to(name);
    network_.builder_.graph().module_calls.push_back({network_.path_, std::string(type)});
}

Network::Network(std::string name, DType dtype) : builder_(std::move(name)), dtype_(dtype) {
    builder_.graph().format = "config";
}

std::string Network::path_to(std::string_view name) const {
    return path_below(path_, std::string(name));
}

std::vector<TensorId> Network::block(std::string_view name, const ShapeBindings& numbers,
                                     const std::vector<TensorId>& inputs, std::string_view past) {
    const std::string_view all = embedded_text("graphs/config/blocks.txt");
    const std::size_t start = all.find(fmt::format("graph {}\n", name));
    const auto [known, is_new] =
        blocks_.try_emplace(filled_in(all.substr(start, all.find("\n~", start) - start), numbers));
    const Graph& part = is_new ? known->second = parse_text_graph(known->first, "blocks.txt") : known->second;
    Graph& whole = builder_.graph();
    std::vector<TensorId> ids(part.tensors.size(), no_tensor);
    std::map<std::string, Expression, std::less<>> sizes;
    for (std::size_t i = 0; i < inputs.size(); ++i) name_sizes(part, i, ids[part.inputs[i]] = inputs[i], whole, sizes);
    std::size_t op = whole.ops.size();
    splice(whole, part, ids, path_, sizes, DType::bf16, dtype_);
    for (std::size_t i = 0; i < ids.size(); ++i)
        if (part.tensors[i].role == TensorRole::weight) whole.tensors[ids[i]].name = path_to(part.tensors[i].name);
    for (std::size_t i = inputs.size(); i < part.inputs.size(); ++i) {
        const TensorId id = whole.inputs.emplace_back(ids[part.inputs[i]]);
        whole.tensors[id].name = fmt::format("{}.{}", past, whole.tensors[id].name);
    }
    for (; op < whole.ops.size(); ++op)
        whole.tensors[whole.ops[op].outputs[0]].name = whole.ops[op].name =
            fmt::format("{}_{}", name_of(whole.ops[op].kind), op);
    return mapped(part.outputs, [&](TensorId id) { return ids[id]; });
}

TensorId Network::input(std::string_view name, Shape shape, DType dtype) {
    const TensorId id = builder_.input(name, {}, dtype);
    builder_.graph().tensors[id].shape = std::move(shape);
    return id;
}

TensorId Network::parameter(std::string_view name, Shape shape) {
    const TensorId id = builder_.weight(path_to(name), {}, dtype_);
    builder_.graph().tensors[id].shape = std::move(shape);
    return id;
}

TensorId Network::apply(OpKind kind, std::string_view source, const std::vector<TensorId>& inputs, Shape shape,
                        std::vector<Attribute> attributes, DType dtype) {
    Graph& graph = builder_.graph();
    const DType type = dtype == DType::unknown ? graph.tensors[inputs.at(0)].dtype : dtype;
    std::vector<Tensor> result(1);
    result[0].dtype = type, result[0].shape = std::move(shape);
    const TensorId id = builder_.op(kind, source, inputs, std::move(attributes), std::move(result))[0];
    graph.ops.back().module = path_;
    return id;
}

TensorId Network::map(std::string_view function, const std::vector<TensorId>& operands, std::optional<Shape> result,
                      DType dtype) {
    return apply(OpKind::pointwise, "aten::" + std::string(function), operands,
                 std::move(result).value_or(shape(operands.at(0))), {{"function", std::string(function)}}, dtype);
}

TensorId Network::map_scalar(std::string_view function, TensorId operand, double scalar) {
    return apply(OpKind::pointwise, "aten::" + std::string(function), {operand}, shape(operand),
                 {{"function", std::string(function)}, {"scalar", scalar}});
}

TensorId Network::cast(TensorId x, DType dtype) {
    return apply(OpKind::cast, "aten::to", {x}, shape(x), {}, dtype);
}

TensorId Network::swap(TensorId x, std::size_t first, std::size_t second) {
    Shape swapped = shape(x);
    std::vector<std::int64_t> perm = all_axes(swapped.size());
    std::swap(swapped[first], swapped[second]);
    std::swap(perm[first], perm[second]);
    return apply(OpKind::transpose, "aten::transpose", {x}, std::move(swapped), {{"perm", std::move(perm)}});
}

TensorId Network::part(TensorId x, std::size_t axis, Expression length) {
    Shape partial = shape(x);
    partial[axis] = length;
    return apply(OpKind::slice, "aten::slice", {x}, std::move(partial));
}

TensorId Network::concat(const std::vector<TensorId>& parts, std::size_t axis) {
    Shape joined = shape(parts.at(0));
    for (std::size_t i = 1; i < parts.size(); ++i) joined[axis] = pool().add(joined[axis], shape(parts[i])[axis]);
    return apply(OpKind::concat, "aten::cat", parts, std::move(joined), {{"axis", static_cast<std::int64_t>(axis)}});
}

TensorId Network::reduce(std::string_view function, TensorId x, std::size_t axis, bool keep) {
    Shape reduced = shape(x);
    if (keep) {
        reduced[axis] = number(1);
    } else {
        reduced.erase(reduced.begin() + static_cast<std::ptrdiff_t>(axis));
    }
    return apply(OpKind::reduce, "aten::" + std::string(function), {x}, std::move(reduced),
                 {{"function", std::string(function)},
                  {"axes", std::vector<std::int64_t>{static_cast<std::int64_t>(axis)}},
                  {"keepdims", std::int64_t{keep}}});
}

TensorId Network::softmax(TensorId x) {
    const auto axis = static_cast<std::int64_t>(shape(x).size()) - 1;
    return apply(OpKind::softmax, "aten::softmax", {x}, shape(x), {{"axis", axis}});
}

TensorId Network::fill(std::string_view source, Shape shape, DType dtype) {
    return apply(OpKind::fill, source, {}, std::move(shape), {}, dtype);
}

TensorId Network::best(TensorId x, std::int64_t count) {
    return apply(OpKind::sort, "aten::topk", {x}, with_last(shape(x), number(count)),
                 {{"function", std::string("topk")}, {"axis", static_cast<std::int64_t>(shape(x).size()) - 1}});
}

TensorId Network::matmul(TensorId a, TensorId b, std::string_view source) {
    return apply(OpKind::matmul, source, {a, b}, with_last(shape(a), shape(b).back()));
}

TensorId Network::linear_with(TensorId x, TensorId weight, TensorId bias) {
    std::vector<TensorId> inputs{x, weight};
    if (bias != no_tensor) inputs.push_back(bias);
    return apply(OpKind::linear, "aten::linear", inputs, with_last(shape(x), shape(weight)[0]));
}

TensorId Network::linear(std::string_view name, TensorId x, std::int64_t width, bool bias) {
    const Module module(*this, name, "torch.nn.modules.linear.Linear");
    const TensorId weight = parameter("weight", {number(width), shape(x).back()});
    return linear_with(x, weight, bias ? parameter("bias", {number(width)}) : no_tensor);
}

TensorId Network::addmm(std::string_view name, TensorId x, std::int64_t width, bool bias) {
    const Module module(*this, name, "transformers.pytorch_utils.Conv1D");
    const std::int64_t from = pool().constant_value(shape(x).back()).value_or(0);
    return block("addmm", {{"from", from}, {"width", width}, {"bias", bias}}, {x})[0];
}

TensorId Network::norm(std::string_view name, TensorId x, NormKind kind) {
    const bool layer = kind <= NormKind::layer_plain;
    const Module module(*this, name, layer ? "torch.nn.modules.normalization.LayerNorm" : "transformers.RMSNorm");
    const bool weighted = kind != NormKind::layer_plain && kind != NormKind::rms_plain;
    TensorId weight = weighted ? parameter("weight", {shape(x).back()}) : no_tensor;
    const auto axis = static_cast<std::int64_t>(shape(x).size()) - 1;
    if (layer) {
        std::vector<TensorId> inputs{x};
        if (weighted) inputs.push_back(weight);
        if (kind == NormKind::layer) inputs.push_back(parameter("bias", {shape(x).back()}));
        return apply(OpKind::layer_norm, "aten::layer_norm", inputs, shape(x), {{"axis", axis}});
    }
    constexpr double epsilon = 1e-6;  // any value: it does not affect the cost
    const TensorId wide = cast(x, DType::f32);
    const TensorId mean = reduce("mean", map_scalar("pow", wide, 2), shape(x).size() - 1, true);
    const TensorId scaled = map("mul", {wide, map("rsqrt", {map_scalar("add", mean, epsilon)})});
    if (!weighted) return cast(scaled, dtype_);
    if (kind == NormKind::rms) return map("mul", {cast(scaled, dtype_), weight});
    weight = map_scalar("add", cast(weight, DType::f32), 1);
    return cast(map("mul", {scaled, weight}), dtype_);
}

TensorId Network::lookup(TensorId table, TensorId indices) {
    Shape result = shape(indices);
    result.push_back(shape(table).back());
    return apply(OpKind::embedding, "aten::embedding", {table, indices}, std::move(result));
}

}  // namespace ftax::config
