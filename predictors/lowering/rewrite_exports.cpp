#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "graphs/ir/operands.hpp"
#include "graphs/ir/rewriting/graph_edits.hpp"
#include "graphs/ir/shape_rules.hpp"
#include "predictors/lowering/rewrites.hpp"
#include "predictors/lowering/spelling.hpp"

// Expansion of PyTorch layers as in ONNX files, for targets that run such files.

namespace ftax::rewrites {
namespace {

/// Returns false for grouped-query attention, and for attention operators of ONNX files.
bool is_written_out(const Graph& graph, const Op& op) {
    if (op.kind != OpKind::attention || op.inputs.size() < 3 || op.outputs.size() != 1) return false;
    const bool of_onnx = graph.format == "onnx" && op.source.find('+') == std::string::npos;
    const auto& q = graph.tensors[op.inputs[0]].shape;
    const auto& k = graph.tensors[op.inputs[1]].shape;
    return !of_onnx && q.size() >= 3 && k.size() == q.size() && std::equal(q.begin(), q.end() - 2, k.begin());
}

void append_attention(Spelling out) {
    Graph& graph = out.graph;
    const Op& op = out.replaced;
    const DType dtype = graph.tensors[op.inputs[0]].dtype;
    const std::vector<Expression> q = graph.tensors[op.inputs[0]].shape;
    const std::vector<Expression> k = graph.tensors[op.inputs[1]].shape;
    const std::size_t rank = q.size();
    std::vector<Expression> turned = k;
    std::swap(turned[rank - 1], turned[rank - 2]);
    std::vector<std::int64_t> perm = all_axes(rank);
    std::swap(perm[rank - 1], perm[rank - 2]);
    std::vector<Expression> scores = q;
    scores[rank - 1] = k[rank - 2];
    const auto scaled = [&](TensorId factor, const std::vector<Expression>& shape) {
        return out.apply(OpKind::pointwise, {factor}, out.tensor(dtype, shape), {{"function", "mul"}});
    };
    const TensorId transposed =
        out.apply(OpKind::transpose, {op.inputs[1]}, out.tensor(dtype, turned), {{"perm", std::move(perm)}});
    const TensorId query = scaled(op.inputs[0], q);
    const TensorId key = scaled(transposed, turned);
    TensorId product = out.apply(OpKind::matmul, {query, key}, out.tensor(dtype, scores));
    const TensorId mask = op.inputs.size() > 3 ? op.inputs[3] : no_tensor;
    if (mask != no_tensor || op.integer("causal", 0) != 0)
        product = out.apply(OpKind::pointwise, {product, mask}, out.tensor(dtype, scores), {{"function", "add"}});
    const TensorId weights = out.apply(OpKind::softmax, {product}, out.tensor(dtype, scores),
                                       {{"axis", static_cast<std::int64_t>(rank - 1)}});
    out.apply(OpKind::matmul, {weights, op.inputs[2]}, op.outputs[0]);
}

void append_gate(Spelling out) {
    const TensorId x = out.replaced.inputs[0];
    const Tensor& input = out.graph.tensors[x];
    const std::string gate = out.replaced.text("function") == "silu" ? "sigmoid" : "hardsigmoid";
    const TensorId share =
        out.apply(OpKind::pointwise, {x}, out.tensor(input.dtype, input.shape), {{"function", gate}});
    out.apply(OpKind::pointwise, {x, share}, out.replaced.outputs[0], {{"function", "mul"}});
}

/// Returns false for the dedicated operators of ONNX files.
bool is_grouped_norm(const Graph& graph, const Op& op) {
    if (op.kind != OpKind::group_norm || op.source.find("GroupNorm") != std::string::npos) return false;
    const Tensor& x = graph.tensors[op.inputs[0]];
    return x.known_shape && x.shape.size() >= 2 && op.integer("groups", 0) > 0;
}

void append_grouped_norm(Spelling out) {
    Graph& graph = out.graph;
    const Op& op = out.replaced;
    const Tensor x = graph.tensors[op.inputs[0]];
    const Expression groups = graph.expressions.constant(op.integer("groups", 0));
    const Expression values = DimensionMath(graph.expressions).product(x.shape, 1, x.shape.size());
    const std::vector<Expression> grouped{x.shape[0], groups, graph.expressions.floor_divide(values, groups)};
    TensorId result = out.apply(OpKind::reshape, {op.inputs[0]}, out.tensor(x.dtype, grouped));
    result = out.apply(OpKind::instance_norm, {result}, out.tensor(x.dtype, grouped));
    std::vector<std::pair<TensorId, std::string>> steps;
    if (op.inputs.size() > 1 && op.inputs[1] != no_tensor) steps.emplace_back(op.inputs[1], "mul");
    if (op.inputs.size() > 2 && op.inputs[2] != no_tensor) steps.emplace_back(op.inputs[2], "add");
    result = out.apply(OpKind::reshape, {result}, steps.empty() ? op.outputs[0] : out.tensor(x.dtype, x.shape));
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const TensorId to = i + 1 == steps.size() ? op.outputs[0] : out.tensor(x.dtype, x.shape);
        result = out.apply(OpKind::pointwise, {result, steps[i].first}, to, {{"function", steps[i].second}});
    }
}

void append_layer_norm(Spelling out) {
    Graph& graph = out.graph;
    const Op& op = out.replaced;
    const Tensor x = graph.tensors[op.inputs[0]];
    const std::vector<Expression> row = with_last(x.shape, graph.expressions.constant(1));
    const auto pointwise = [&](std::vector<TensorId> inputs, const char* function) {
        return out.apply(OpKind::pointwise, std::move(inputs), out.tensor(x.dtype, x.shape), {{"function", function}});
    };
    const auto mean = [&](TensorId of) {
        return out.apply(OpKind::reduce, {of}, out.tensor(x.dtype, row),
                         {{"function", "mean"}, {"axes", std::vector<std::int64_t>{-1}}});
    };
    const TensorId centred = pointwise({op.inputs[0], mean(op.inputs[0])}, "sub");
    const TensorId variance = mean(pointwise({centred}, "pow"));
    std::vector<TensorId> operands{centred, variance};
    operands.insert(operands.end(), op.inputs.begin() + 1, op.inputs.end());
    out.apply(OpKind::pointwise, std::move(operands), op.outputs[0], {{"function", std::string(fused_function)}});
}

void append_slices(Spelling out) {
    const std::vector<std::int64_t> axes{out.replaced.integer("axis", 0)};
    for (const TensorId piece : out.replaced.outputs)
        out.apply(OpKind::slice, {out.replaced.inputs[0]}, piece,
                  {{"axes", axes}, {"step", std::vector<std::int64_t>{1}}});
}

/// Rolls each dimension by slicing both parts and concatenating them in reverse order.
void append_roll(Spelling out) {
    Graph& graph = out.graph;
    const auto axes = out.replaced.integers("axes");
    const auto shifts = out.replaced.integers("shifts");
    const Tensor whole = graph.tensors[out.replaced.inputs[0]];
    TensorId rolled = out.replaced.inputs[0];
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto axis = static_cast<std::size_t>(axes[i]);
        const Expression size = whole.shape[axis];
        std::vector<Expression> tail = whole.shape;
        std::vector<Expression> head = whole.shape;
        tail[axis] = graph.expressions.modulo(graph.expressions.constant(shifts[i]), size);
        head[axis] = graph.expressions.subtract(size, tail[axis]);
        const std::vector<Attribute> cut = {{"axes", std::vector<std::int64_t>{axes[i]}},
                                            {"step", std::vector<std::int64_t>{1}}};
        const TensorId last = out.apply(OpKind::slice, {rolled}, out.tensor(whole.dtype, tail), cut);
        const TensorId first = out.apply(OpKind::slice, {rolled}, out.tensor(whole.dtype, head), cut);
        const bool done = i + 1 == axes.size();
        rolled = out.apply(OpKind::concat, {last, first},
                           done ? out.replaced.outputs[0] : out.tensor(whole.dtype, whole.shape), {{"axis", axes[i]}});
    }
}

}  // namespace

/// Expands scaled_dot_product_attention to product, softmax and product as exporters do, with both factors scaled
/// first. Attention operators of ONNX files are kept. Source: torch.onnx, symbolic_opset14.py and torch_lib.
void write_out_attention(Graph& graph) {
    write_out(graph, is_written_out, append_attention);
}

/// Expands swish and hard swish, x · g(x), to a sigmoid and a product: ONNX has no such node, or as a function of two.
/// Source: torch.onnx, symbolic_opset9.py (silu); ONNX, HardSwish, a function that ONNX Runtime 1.12 expands on CUDA.
void write_out_gates(Graph& graph) {
    write_out(
        graph, [](const Graph&, const Op& op) { return computes(op, "silu", "hardswish"); }, append_gate);
}

/// Expands a group norm to an instance norm over its groups and a scale and shift of the channels.
/// Source: torch.onnx, symbolic_opset9.py and torch_lib (group_norm).
void write_out_group_norm(Graph& graph) {
    write_out(graph, is_grouped_norm, append_grouped_norm);
}

/// Expands a layer norm to two means and the elementwise operators around them, each of which is a kernel or part of
/// one. Source: torch.onnx, symbolic_opset9.py (layer_norm); opset 17 is the first with LayerNormalization.
void write_out_layer_norm(Graph& graph) {
    const auto is_norm = [](const Graph& of, const Op& op) {
        return op.kind == OpKind::layer_norm && of.tensors[op.inputs[0]].known_shape;
    };
    write_out(graph, is_norm, append_layer_norm);
}

/// Expands torch.chunk to one slice per piece and torch.roll to slices and concatenations.
/// Source: torch.onnx, symbolic_opset9.py (roll) and prim::ConstantChunk; torch_lib, core.py (aten_roll, aten_chunk).
void write_out_movement(Graph& graph) {
    const auto is_chunk = [](const Graph&, const Op& op) {
        return op.kind == OpKind::split && op.source.ends_with("chunk");
    };
    const auto is_roll = [](const Graph& of, const Op& op) {
        return op.kind == OpKind::copy && !op.integers("shifts").empty() && of.tensors[op.inputs[0]].known_shape;
    };
    write_out(graph, is_chunk, append_slices);
    write_out(graph, is_roll, append_roll);
}

}  // namespace ftax::rewrites
