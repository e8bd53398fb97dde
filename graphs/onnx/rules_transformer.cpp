#include "graphs/onnx/rules.hpp"

namespace ftax::onnx_import {
namespace {

const Dims& shape_of(const Node& n, TensorId tensor) {
    return n.construction.graph.tensors[tensor].shape;
}

/// Exchanges the middle dimensions of [b, s, h, d], as a view.
TensorId exchanged(Node& n, std::string_view step, TensorId tensor) {
    const Dims& x = shape_of(n, tensor);
    return n.emit(OpKind::transpose, step, {tensor}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}},
                  n.construction.graph.tensors[tensor].dtype, {x[0], x[2], x[1], x[3]});
}

/// Splits [b, s, heads·d] into [b, heads, s, d]: a reshape and a transpose, as views.
TensorId to_heads(Node& n, TensorId tensor, std::int64_t heads) {
    const Dims& x = shape_of(n, tensor);
    const Dims split{x[0], x[1], n.math().constant(heads), n.math().floor_divide(x[2], heads)};
    const DType dtype = n.construction.graph.tensors[tensor].dtype;
    return exchanged(n, "heads_first", n.emit(OpKind::reshape, "heads", {tensor}, {}, dtype, split));
}

/// A view of a part of those dimensions, cut out along an axis.
TensorId part_of(Node& n, TensorId tensor, std::int64_t axis, Dims dims) {
    return n.emit(OpKind::slice, "part", {tensor}, {{"axes", std::vector{axis}}},
                  n.construction.graph.tensors[tensor].dtype, std::move(dims));
}

/// Appends the new keys (or values) to the cached ones along the sequence axis and names the result as an output.
TensorId with_past(Node& n, TensorId now, std::size_t past_input, std::size_t present_output) {
    TensorId all = now;
    if (n.has(past_input) && n.rank(past_input) == 4) {
        Dims dims = shape_of(n, now);
        dims[2] = n.math().add(dims[2], n.dims(past_input)[2]);
        all = n.emit(OpKind::concat, "cache", {n.inputs[past_input], now}, {{"axis", 2}}, n.dtype(0), dims);
    }
    if (present_output < n.output_count()) {
        n.output(present_output, n.dtype(0), shape_of(n, all));
        n.outputs[present_output].alias = all;
    }
    return all;
}

/// Fused attention over [b, h, s, d] operands; the node's output is [b, h, s, d] or merged to [b, s, h·d].
void attend(Node& n, TensorId q, TensorId k, TensorId v, TensorId mask, bool causal, bool merge) {
    const Dims& query = shape_of(n, q);
    const Dims heads{query[0], query[1], query[2], shape_of(n, v)[3]};
    std::vector<TensorId> operands{q, k, v};
    if (mask != no_tensor) operands.push_back(mask);
    if (!merge) {
        n.kind = OpKind::attention;
        n.op_inputs = std::move(operands);
        n.set("causal", std::int64_t{causal});
        return n.output(0, n.dtype(0), heads);
    }
    const TensorId attended =
        n.emit(OpKind::attention, "attention", operands, {{"causal", std::int64_t{causal}}}, n.dtype(0), heads);
    n.op_inputs = {exchanged(n, "heads_last", attended)};
    n.kind = OpKind::reshape;
    n.output(0, n.dtype(0), {heads[0], heads[2], n.math().multiply(heads[1], heads[3])});
}

std::int64_t head_count(const Node& n, std::string_view key) {
    const std::int64_t heads = n.required_integer(key);
    if (heads < 1 || heads > 1 << 20) n.fail("{} {}", key, heads);
    return heads;
}

TensorId mask_input(const Node& n, std::size_t input) {
    return n.has(input) ? n.inputs[input] : no_tensor;
}

/// Operands [b, heads, s, d] out of [b, s, heads, count, d].
std::vector<TensorId> unpacked(Node& n, TensorId packed, std::int64_t count) {
    const Dims whole = shape_of(n, packed);
    if (!n.math().is_constant(whole[3], count)) n.fail("dimension 3 of a packed operand must be {}", count);
    std::vector<TensorId> parts(static_cast<std::size_t>(count));
    for (TensorId& part : parts)
        part = exchanged(n, "heads_first", part_of(n, packed, 3, {whole[0], whole[1], whole[2], whole[4]}));
    return parts;
}

/// Cuts [b, s, Σ widths] into parts along the last axis.
std::vector<TensorId> cut(Node& n, TensorId packed, const std::vector<Expression>& widths) {
    const Dims whole = shape_of(n, packed);
    return mapped(widths, [&](Expression width) { return part_of(n, packed, 2, {whole[0], whole[1], width}); });
}

}  // namespace

/// ai.onnx::Attention
void attention(Node& n) {
    const bool causal = n.integer("is_causal", 0) != 0;
    const bool merge = n.rank(0) == 3;
    if (!merge && n.rank(0) != 4) n.fail("Q must have rank 3 or 4");
    if (n.rank(1) != n.rank(0) || n.rank(2) != n.rank(0)) n.fail("Q, K and V differ in rank");
    TensorId q = n.inputs[0], k = n.inputs[1], v = n.inputs[2];
    if (merge) {
        const std::int64_t kv_heads = head_count(n, "kv_num_heads");
        q = to_heads(n, q, head_count(n, "q_num_heads"));
        k = to_heads(n, k, kv_heads);
        v = to_heads(n, v, kv_heads);
    }
    k = with_past(n, k, 4, 1);
    v = with_past(n, v, 5, 2);
    const Dims scores{shape_of(n, q)[0], shape_of(n, q)[1], shape_of(n, q)[2], shape_of(n, k)[2]};
    n.output(3, n.dtype(0), scores);
    attend(n, q, k, v, mask_input(n, 3), causal, merge);
}

/// com.microsoft::Attention
void packed_attention(Node& n) {
    const Dims& x = n.dims(0);
    const Dims& w = n.dims(1);
    if (x.size() != 3 || w.size() != 2) n.fail("input must have rank 3 and weights rank 2");
    const std::int64_t heads = head_count(n, "num_heads");
    ShapeMath& math = n.math();
    std::vector<TensorId> operands{n.inputs[0], n.inputs[1]};
    if (n.has(2)) operands.push_back(n.inputs[2]);
    const Expression width = w[1];
    std::vector<Expression> widths(3, math.floor_divide(width, 3));
    if (const auto sizes = n.integers("qkv_hidden_sizes"); sizes && sizes->size() == 3)
        for (std::size_t i = 0; i < 3; ++i) widths[i] = math.constant((*sizes)[i]);
    const Dims projected{x[0], x[1], width};
    const TensorId packed =
        n.emit(OpKind::linear, "projection", operands, {{"transposed_weight", 0}}, n.dtype(0), projected);
    const std::vector<TensorId> parts = cut(n, packed, widths);
    const TensorId q = to_heads(n, parts[0], heads), k = to_heads(n, parts[1], heads), v = to_heads(n, parts[2], heads);
    const Dims keys = shape_of(n, k);
    n.output(1, n.dtype(0), {math.constant(2), keys[0], keys[1], keys[2], keys[3]});
    attend(n, q, k, v, mask_input(n, 3), n.integer("unidirectional", 0) != 0, true);
}

void multi_head_attention(Node& n) {
    const std::int64_t heads = head_count(n, "num_heads");
    const bool causal = n.integer("unidirectional", 0) != 0;
    if (n.rank(0) == 5) {  // query, key and value of each head side by side
        const auto packed = unpacked(n, n.inputs[0], 3);
        return attend(n, packed[0], packed[1], packed[2], mask_input(n, 5), causal, true);
    }
    if (n.rank(0) != 3) n.fail("query must have rank 3, or 5 with key and value");
    const TensorId q = to_heads(n, n.inputs[0], heads);
    if (n.has(1) && n.rank(1) == 5) {
        const auto packed = unpacked(n, n.inputs[1], 2);
        return attend(n, q, packed[0], packed[1], mask_input(n, 5), causal, true);
    }
    if (!n.has(1) || !n.has(2)) n.fail("key or value is missing");
    const auto heads_of = [&](std::size_t input) {
        return n.rank(input) == 3 ? to_heads(n, n.inputs[input], heads) : n.inputs[input];
    };
    if ((n.rank(1) != 3 && n.rank(1) != 4) || n.rank(2) != n.rank(1)) n.fail("key and value must have rank 3 or 4");
    const TensorId k = with_past(n, heads_of(1), 6, 1);
    const TensorId v = with_past(n, heads_of(2), 7, 2);
    attend(n, q, k, v, mask_input(n, 5), causal, true);
}

void group_query_attention(Node& n) {
    const std::int64_t heads = head_count(n, "num_heads");
    const std::int64_t kv_heads = head_count(n, "kv_num_heads");
    if (n.rank(0) != 3) n.fail("query must have rank 3");
    TensorId q = n.inputs[0], k = n.has(1) ? n.inputs[1] : no_tensor, v = n.has(2) ? n.inputs[2] : no_tensor;
    if (k == no_tensor || v == no_tensor) {
        ShapeMath& math = n.math();
        const Expression head = math.floor_divide(n.dims(0)[2], heads + 2 * kv_heads);
        const auto parts =
            cut(n, q, {math.multiply(head, heads), math.multiply(head, kv_heads), math.multiply(head, kv_heads)});
        q = parts[0], k = parts[1], v = parts[2];
    } else if (n.rank(1) != 3 || n.rank(2) != 3) {
        n.fail("key and value must have rank 3");
    }
    q = to_heads(n, q, heads);
    k = with_past(n, to_heads(n, k, kv_heads), 3, 1);
    v = with_past(n, to_heads(n, v, kv_heads), 4, 2);
    attend(n, q, k, v, no_tensor, true, true);
}

void rotary_embedding(Node& n) {
    if (n.rank(0) != 3 && n.rank(0) != 4) n.fail("input must have rank 3 or 4");
}

void skip_layer_norm(Node& n) {
    Dims statistics = n.dims(0);
    if (statistics.empty()) n.fail("input is a scalar");
    statistics.back() = n.math().constant(1);
    n.output(1, DType::f32, statistics);
    n.output(2, DType::f32, statistics);
    n.output(3, n.dtype(0), n.dims(0));
    n.set("axis", static_cast<std::int64_t>(statistics.size()) - 1);
}

/// BiasGelu, BiasAdd, …: broadcast, one pass.
void bias_function(Node& n) {
    Dims& result = n.result();
    for (std::size_t i = 1; i < n.inputs.size(); ++i)
        if (n.has(i)) result = n.broadcast(result, n.dims(i));
}

void bias_split_gelu(Node& n) {
    Dims& result = n.result();
    if (result.empty()) n.fail("input is a scalar");
    result.back() = n.math().floor_divide(result.back(), 2);
}

void bias_softmax(Node& n) {
    n.set_axis(n.integer("axis", 1), n.rank(0));
}

}  // namespace ftax::onnx_import
