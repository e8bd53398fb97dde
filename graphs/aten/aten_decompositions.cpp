#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <optional>

#include "graphs/aten/aten_table.hpp"
#include "graphs/ir/einsum.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/ir/shape_rules.hpp"

namespace ftax {
namespace {

/// Appends a tensor that the file does not name, e.g. between the steps of an einsum.
TensorId intermediate(Graph& graph, const AtenCall& call, DType dtype, std::vector<Expression> shape,
                      std::vector<Expression> strides = {}) {
    return append(graph, {fmt::format("{}.{}", call.name, graph.tensors.size()), dtype, TensorRole::activation, true,
                          std::move(shape), std::move(strides), no_op});
}

/// torch.einsum: of one operand, what the result leaves out is summed and the rest permuted. Two are permuted to
/// [shared…, own…, summed…], folded to batches of matrices, multiplied, unfolded and permuted to the requested order;
/// where nothing is summed they are multiplied element by element. More are taken from the left.
/// Source: aten/src/ATen/native/Linear.cpp, einsum and sumproduct_pair.
class Einsum {
  public:
    Einsum(Graph& graph, const AtenCall& call) : graph_(graph), call_(call), pool_(graph.expressions) {}

    /// Returns false for equations outside this form (no arrow, a letter twice in one operand).
    bool append() {
        const AtenArgument* text = call_.find("equation");
        const AtenArgument* tensors = call_.find("tensors");
        if (!text || !tensors || call_.outputs.size() != 1) return false;
        std::vector<std::size_t> ranks;
        for (const TensorId id : tensors->tensors) {
            if (id == no_tensor) return false;
            ranks.push_back(graph_.tensors[id].shape.size());
        }
        const EinsumEquation equation = read_einsum(text->text, ranks);
        if (!equation.problem.empty() || !equation.has_arrow) return false;
        for (std::size_t i = 0; i < ranks.size(); ++i)
            if (!note_sizes(equation.operands[i], tensors->tensors[i])) return false;
        if (ranks.size() == 1) return append_permutation(tensors->tensors[0], equation.operands[0], equation.result);
        return append_products(tensors->tensors, equation.operands, equation.result);
    }

    /// torch.tensordot: the dimensions that it names are summed, those of the first operand come first in the result.
    bool append_tensordot() {
        const TensorId a = call_.tensor("self"), b = call_.tensor("other");
        const auto dims_a = call_.integers("dims_self"), dims_b = call_.integers("dims_other");
        if (a == no_tensor || b == no_tensor || dims_a.size() != dims_b.size()) return false;
        const auto rank = [&](TensorId id) { return graph_.tensors[id].shape.size(); };
        if (rank(a) + rank(b) > 26) return false;
        std::string left(rank(a), ' '), right(rank(b), ' ');
        char next = 'a';
        for (std::size_t i = 0; i < dims_a.size(); ++i)
            left.at(call_.axis(dims_a[i], rank(a))) = right.at(call_.axis(dims_b[i], rank(b))) = next++;
        std::string kept;
        for (std::string* letters : {&left, &right})
            for (char& letter : *letters)
                if (letter == ' ') kept += letter = next++;
        note_sizes(left, a), note_sizes(right, b);
        return append_product(a, b, left, right, kept, call_.outputs[0]);
    }

  private:
    bool append_permutation(TensorId operand, const std::string& from, const std::string& to) {
        std::vector<std::int64_t> summed;
        std::string kept;
        for (std::size_t i = 0; i < from.size(); ++i) {
            if (has(to, from[i])) {
                kept += from[i];
            } else {
                summed.push_back(static_cast<std::int64_t>(i));
            }
        }
        if (kept.size() != to.size() || !std::is_permutation(kept.begin(), kept.end(), to.begin())) return false;
        if (!summed.empty()) {
            const DType dtype = graph_.tensors[operand].dtype;
            const TensorId sum = kept == to ? call_.outputs[0] : intermediate(graph_, call_, dtype, sizes(kept));
            append_op(graph_, call_, OpKind::reduce, {operand}, {sum},
                      {{"function", "sum"}, {"axes", summed}, {"keepdims", 0}});
            operand = sum;
        }
        if (summed.empty() || kept != to)
            append_op(graph_, call_, OpKind::transpose, {operand}, {call_.outputs[0]},
                      {{"perm", einsum_permutation(kept, to)}});
        return true;
    }

    bool append_products(const std::vector<TensorId>& operands, std::vector<std::string> terms,
                         const std::string& out) {
        if (terms.size() < 2) return false;
        std::string all;
        for (const std::string& term : terms) all += term;
        for (const char letter : all) {  // what one operand has alone and the result has not
            if (!has(out, letter) && std::ranges::count(all, letter) == 1) return false;
        }
        TensorId product = operands[0];
        for (std::size_t i = 1; i < terms.size(); ++i) {
            const bool last = i + 1 == terms.size();
            std::string kept = last ? out : std::string();
            for (const char letter : last ? std::string() : terms[i - 1] + terms[i]) {
                bool later = has(out, letter);
                for (std::size_t k = i + 1; k < terms.size(); ++k) later = later || has(terms[k], letter);
                if (later && !has(kept, letter)) kept += letter;
            }
            const DType dtype = graph_.tensors[call_.outputs[0]].dtype;
            const TensorId into = last ? call_.outputs[0] : intermediate(graph_, call_, dtype, sizes(kept));
            if (!append_product(product, operands[i], terms[i - 1], terms[i], kept, into)) return false;
            product = into;
            terms[i] = kept;
        }
        return true;
    }

    bool append_product(TensorId a, TensorId b, const std::string& from_a, const std::string& from_b,
                        const std::string& to, TensorId into) {
        const auto [shared, own_a, own_b, summed] = einsum_roles(from_a, from_b, to, from_a + from_b);
        const std::string result = shared + own_a + own_b;
        if (!std::is_permutation(result.begin(), result.end(), to.begin(), to.end())) return false;
        if (summed.empty()) {
            append_op(graph_, call_, OpKind::pointwise, {a, b}, {into}, {{"function", "mul"}});
            return true;
        }
        const TensorId left = fold(permute(a, from_a, shared + own_a + summed), {shared, own_a, summed});
        const TensorId right = fold(permute(b, from_b, shared + summed + own_b), {shared, summed, own_b});
        const DType dtype = graph_.tensors[call_.outputs[0]].dtype;
        const TensorId product = intermediate(graph_, call_, dtype, {size(shared), size(own_a), size(own_b)});
        append_op(graph_, call_, OpKind::matmul, {left, right}, {product});
        if (result == to) {
            append_op(graph_, call_, OpKind::reshape, {product}, {into});
            return true;
        }
        const TensorId unfolded = intermediate(graph_, call_, dtype, sizes(result));
        append_op(graph_, call_, OpKind::reshape, {product}, {unfolded});
        append_op(graph_, call_, OpKind::transpose, {unfolded}, {into}, {{"perm", einsum_permutation(result, to)}});
        return true;
    }

    static bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

    /// Returns false for a letter that is there twice.
    bool note_sizes(const std::string& letters, TensorId id) {
        for (std::size_t i = 0; i < letters.size(); ++i) {
            if (letters.find(letters[i], i + 1) != std::string::npos) return false;
            sizes_[letters[i]] = graph_.tensors[id].shape[i];
        }
        return true;
    }

    std::vector<Expression> sizes(const std::string& letters) const {
        return mapped(letters, [&](char letter) { return sizes_.at(letter); });
    }

    Expression size(const std::string& letters) const { return DimensionMath(pool_).product(sizes(letters)); }

    TensorId permute(TensorId id, const std::string& from, const std::string& to) {
        if (from == to) return id;
        const std::vector<std::int64_t> perm = einsum_permutation(from, to);
        const Tensor& held = graph_.tensors[id];
        const Dims old_strides =
            held.strides.empty() ? DimensionMath(pool_).contiguous_strides(held.shape) : held.strides;
        Dims strides = mapped(perm, [&](std::int64_t axis) { return old_strides[static_cast<std::size_t>(axis)]; });
        const TensorId result = intermediate(graph_, call_, graph_.tensors[id].dtype, sizes(to), std::move(strides));
        append_op(graph_, call_, OpKind::transpose, {id}, {result}, {{"perm", perm}});
        return result;
    }

    TensorId fold(TensorId id, const std::array<std::string, 3>& parts) {
        const TensorId result =
            intermediate(graph_, call_, graph_.tensors[id].dtype, {size(parts[0]), size(parts[1]), size(parts[2])});
        append_op(graph_, call_, OpKind::reshape, {id}, {result});
        return result;
    }

    Graph& graph_;
    const AtenCall& call_;
    ExpressionPool& pool_;
    std::map<char, Expression> sizes_;
};

/// Sequence of operators that PyTorch calls inside another one; the last writes its result.
class Steps {
  public:
    Steps(Graph& graph, const AtenCall& call) : graph_(graph), call_(call) {}

    /// As large as its first input.
    TensorId pointwise(const char* function, std::vector<TensorId> inputs, TensorId into = no_tensor) {
        if (into == no_tensor) into = like(inputs[0], graph_.tensors[inputs[0]].shape);
        return append(OpKind::pointwise, function, std::move(inputs), into, {});
    }
    /// Over `axes`, or over all of them.
    TensorId reduce(const char* function, std::vector<TensorId> inputs, std::vector<std::int64_t> axes = {},
                    TensorId into = no_tensor) {
        std::vector<Expression> shape = graph_.tensors[inputs[0]].shape;
        if (axes.empty()) axes = all_axes(shape.size());
        for (const std::int64_t axis : axes) shape[static_cast<std::size_t>(axis)] = graph_.expressions.constant(1);
        if (into == no_tensor) into = like(inputs[0], std::move(shape));
        return append(OpKind::reduce, function, std::move(inputs), into, {{"axes", std::move(axes)}, {"keepdims", 1}});
    }
    /// Sum or mean of a loss, as its argument `reduction` says. Source: ATen/native/Loss.cpp, apply_loss_reduction.
    void finish(TensorId loss) {
        reduce(call_.integer("reduction", 1) == 2 ? "sum" : "mean", {loss}, {}, call_.outputs[0]);
    }
    /// Source: aten/src/ATen/native/Distance.cpp, pairwise_distance.
    TensorId distance(TensorId a, TensorId b) {
        const auto last = static_cast<std::int64_t>(graph_.tensors[a].shape.size()) - 1;
        return reduce("norm", {pointwise("add", {pointwise("sub", {a, b})})}, {last});
    }

  private:
    /// The first is called from Python, those after it are not.
    TensorId append(OpKind kind, const char* function, std::vector<TensorId> inputs, TensorId into,
                    std::vector<Attribute> attributes) {
        attributes.insert(attributes.begin(), {"function", std::string(function)});
        if (appended_++ > 0) attributes.push_back({"inner", 1});
        append_op(graph_, call_, kind, std::move(inputs), {into}, std::move(attributes));
        return into;
    }
    TensorId like(TensorId tensor, std::vector<Expression> shape) {
        return intermediate(graph_, call_, graph_.tensors[tensor].dtype, std::move(shape));
    }

    Graph& graph_;
    const AtenCall& call_;
    int appended_ = 0;
};

/// The named operands, where all are there, of known shapes and at least one dimension, and there is one result.
std::optional<std::vector<TensorId>> operands_of(const Graph& graph, const AtenCall& call,
                                                 std::initializer_list<const char*> names) {
    std::vector<TensorId> result = mapped(names, [&](const char* name) { return call.tensor(name); });
    const bool known = std::ranges::all_of(result, [&](TensorId id) {
        return id != no_tensor && graph.tensors[id].known_shape && !graph.tensors[id].shape.empty();
    });
    if (!known || call.outputs.size() != 1) return std::nullopt;
    return result;
}

}  // namespace

void append_op(Graph& graph, const AtenCall& call, OpKind kind, std::vector<TensorId> inputs,
               std::vector<TensorId> outputs, std::vector<Attribute> attributes) {
    const auto id = static_cast<OpId>(graph.ops.size());
    for (const TensorId output : outputs) graph.tensors[output].producer = id;
    const bool continues = !graph.ops.empty() && (graph.ops.back().name + '.').starts_with(call.name + '.');
    std::string name = continues ? fmt::format("{}.{}", call.name, id) : call.name;
    graph.ops.push_back({kind, std::move(name), call.target, call.module, std::move(inputs), std::move(outputs),
                         std::move(attributes)});
}

bool append_einsum(Graph& graph, const AtenCall& call) {
    return Einsum(graph, call).append();
}

bool append_tensordot(Graph& graph, const AtenCall& call) {
    return Einsum(graph, call).append_tensordot();
}

/// What torch.export writes for a part of a tensor of a subclass: the part is the weight, the whole is not stored.
bool append_inner_tensor(Graph& graph, const AtenCall& call) {
    const TensorId whole = call.tensor("src_subclass_tensor");
    if (whole == no_tensor || call.outputs.size() != 1) return false;
    TensorRole& role = graph.tensors[whole].role;
    if (role != TensorRole::weight && role != TensorRole::constant) return false;
    role = TensorRole::constant;
    graph.tensors[call.outputs[0]].role = TensorRole::weight;
    return true;
}

/// A product with weights of four bits in tiles. Source: aten/src/ATen/native/cuda/int4mm.cu.
bool append_packed_linear(Graph& graph, const AtenCall& call) {
    const TensorId x = call.tensor("self"), packed = call.tensor("mat2");
    if (x == no_tensor || packed == no_tensor || call.outputs.size() != 1) return false;
    const std::vector<Expression> rows = graph.tensors[x].shape, results = graph.tensors[call.outputs[0]].shape;
    if (rows.empty() || results.empty()) return false;
    const TensorId weight = intermediate(graph, call, DType::u4, {results.back(), rows.back()});
    graph.tensors[weight].role = TensorRole::weight;
    graph.tensors[packed].role = TensorRole::constant;
    append_op(graph, call, OpKind::linear, {x, weight}, {call.outputs[0]},
              {{std::string(weights_attribute), std::string("w4a16")}});
    return true;
}

/// The fast path of nn.MultiheadAttention without gradients: one product for queries, keys and values, fused attention
/// on views of it, one product for the result. Source: ATen, native/transformers/cuda/attention.cu.
bool append_native_attention(Graph& graph, const AtenCall& call) {
    const TensorId query = call.tensor("query"), qkv_weight = call.tensor("qkv_weight");
    const TensorId qkv_bias = call.tensor("qkv_bias"), weight = call.tensor("proj_weight");
    const std::int64_t heads = call.integer("num_head", 0), width = call.integer("embed_dim", 0);
    if (query == no_tensor || qkv_weight == no_tensor || weight == no_tensor || heads < 1 || width < heads)
        return false;
    if (call.outputs.empty() || query != call.tensor("key") || query != call.tensor("value")) return false;
    const std::vector<Expression> shape = graph.tensors[query].shape;
    if (!graph.tensors[query].known_shape || shape.size() != 3) return false;
    ExpressionPool& pool = graph.expressions;
    const DType dtype = graph.tensors[query].dtype;
    const Expression h = pool.constant(heads), d = pool.constant(width / heads),
                     packed_width = pool.constant(3 * width);
    const TensorId packed = intermediate(graph, call, dtype, {shape[0], shape[1], packed_width});
    append_op(graph, call, OpKind::linear, {query, qkv_weight, qkv_bias}, {packed});
    std::vector<TensorId> parts;
    const std::vector<Expression> strides = {pool.multiply(shape[1], packed_width), d, packed_width, pool.constant(1)};
    for (int i = 0; i < 3; ++i) parts.push_back(intermediate(graph, call, dtype, {shape[0], h, shape[1], d}, strides));
    append_op(graph, call, OpKind::split, {packed}, parts, {{"axis", 2}});
    const TensorId context = intermediate(graph, call, dtype, {shape[0], h, shape[1], d});
    append_op(graph, call, OpKind::attention, parts, {context}, {{"causal", 0}});
    const TensorId joined = intermediate(graph, call, dtype, shape);
    append_op(graph, call, OpKind::reshape, {context}, {joined});
    append_op(graph, call, OpKind::linear, {joined, weight, call.tensor("proj_bias")}, {call.outputs[0]});
    return true;
}

/// The fast path of nn.TransformerEncoderLayer without gradients: attention as above, two norms, two linear layers.
/// Source: aten/src/ATen/native/transformers/transformer.cpp, transformer_encoder_layer_forward.
bool append_encoder_layer(Graph& graph, const AtenCall& call) {
    const TensorId source = call.tensor("src"), first = call.tensor("ffn_weight_1"),
                   second = call.tensor("ffn_weight_2");
    const std::int64_t heads = call.integer("num_heads", 0), width = call.integer("embed_dim", 0);
    if (source == no_tensor || first == no_tensor || second == no_tensor || call.outputs.empty()) return false;
    if (call.tensor("qkv_weight") == no_tensor || call.tensor("proj_weight") == no_tensor) return false;
    if (heads < 1 || width < heads) return false;
    const std::vector<Expression> shape = graph.tensors[source].shape;
    const DType dtype = graph.tensors[source].dtype;
    if (!graph.tensors[source].known_shape || shape.size() != 3 || graph.tensors[first].shape.size() != 2) return false;
    const std::vector<Expression> wide = with_last(shape, graph.tensors[first].shape[0]);
    const auto norm = [&](TensorId x, std::string_view which, TensorId result) {
        const std::string number(which);
        append_op(graph, call, OpKind::layer_norm,
                  {x, call.tensor("norm_weight_" + number), call.tensor("norm_bias_" + number)}, {result},
                  {{"axis", 2}});
        return result;
    };
    const auto pointwise = [&](const char* function, std::vector<TensorId> inputs, std::vector<Expression> dims) {
        const TensorId result = intermediate(graph, call, dtype, std::move(dims));
        append_op(graph, call, OpKind::pointwise, std::move(inputs), {result}, {{"function", std::string(function)}});
        return result;
    };
    const auto hidden = [&] { return intermediate(graph, call, dtype, shape); };
    const bool norm_first = call.integer("norm_first", 0) != 0;

    AtenCall attention{"aten::_native_multi_head_attention", call.name, call.module, {}, {hidden()}};
    const TensorId attended = norm_first ? norm(source, "1", hidden()) : source;
    for (const char* operand : {"query", "key", "value"})
        attention.arguments.push_back({operand, {attended}, {}, {}, {}, {}});
    for (const char* same : {"embed_dim", "qkv_weight", "qkv_bias", "proj_weight", "proj_bias"})
        if (const AtenArgument* argument = call.find(same)) attention.arguments.push_back(*argument);
    attention.arguments.push_back({"num_head", {}, {heads}, {}, {}, {}});
    static_cast<void>(append_native_attention(graph, attention));
    TensorId x = pointwise("add", {attention.outputs[0], source}, shape);
    if (!norm_first) x = norm(x, "1", hidden());
    const TensorId residual = x;
    if (norm_first) x = norm(x, "2", hidden());
    const TensorId expanded = intermediate(graph, call, dtype, wide);
    append_op(graph, call, OpKind::linear, {x, first, call.tensor("ffn_bias_1")}, {expanded});
    const TensorId activated = pointwise(call.integer("use_gelu", 0) != 0 ? "gelu" : "relu", {expanded}, wide);
    const TensorId reduced = hidden();
    append_op(graph, call, OpKind::linear, {activated, second, call.tensor("ffn_bias_2")}, {reduced});
    if (norm_first) {
        append_op(graph, call, OpKind::pointwise, {reduced, residual}, {call.outputs[0]}, {{"function", "add"}});
    } else {
        norm(pointwise("add", {reduced, residual}, shape), "2", call.outputs[0]);
    }
    return true;
}

/// torch.logsumexp: the maximum, where it is finite, is subtracted before exp and added after log.
/// Source: aten/src/ATen/native/ReduceOps.cpp, logsumexp_out_impl (2.5): nine kernels.
bool append_logsumexp(Graph& graph, const AtenCall& call) {
    const auto x = operands_of(graph, call, {"self"});
    if (!x) return false;
    const std::vector<std::int64_t> axes = call.axes("dim", graph.tensors[x->at(0)].shape.size());
    Steps steps(graph, call);
    const TensorId most = steps.reduce("max", *x, axes);
    const TensorId infinite = steps.pointwise("equal", {steps.pointwise("abs", {most})});
    const TensorId shift = steps.pointwise("where", {most, infinite});
    const TensorId sum =
        steps.reduce("sum", {steps.pointwise("exp", {steps.pointwise("sub", {x->at(0), shift})})}, axes);
    steps.pointwise("add", {steps.pointwise("log", {sum}), shift}, call.outputs[0]);
    return true;
}

/// Source: aten/src/ATen/native/Distance.cpp, cosine_similarity (2.5): ten kernels.
bool append_cosine_similarity(Graph& graph, const AtenCall& call) {
    const auto x = operands_of(graph, call, {"x1", "x2"});
    if (!x) return false;
    const std::int64_t axis = call.axis(call.integer("dim", 1), graph.tensors[x->at(0)].shape.size());
    Steps steps(graph, call);
    const std::vector<TensorId> unit = mapped(*x, [&](TensorId operand) {
        const TensorId norm = steps.pointwise("copy", {steps.reduce("norm", {operand}, {axis})});
        return steps.pointwise("div", {operand, steps.pointwise("clamp", {norm})});
    });
    steps.reduce("sum", {steps.pointwise("mul", unit)}, {axis}, call.outputs[0]);
    return true;
}

/// Losses of an elementwise kernel (Kullback-Leibler: three) and a sum or mean. Source: ATen, Loss.cpp (2.5).
bool append_loss(Graph& graph, const AtenCall& call) {
    const auto x = operands_of(graph, call, {"self", "target"});
    if (!x || call.integer("reduction", 1) == 0) return false;
    Steps steps(graph, call);
    const std::string name = call.target.substr(call.target.rfind(':') + 1);
    if (name == "kl_div") {
        const TensorId entropy = steps.pointwise("xlogy", {x->at(1), x->at(1)});
        steps.finish(steps.pointwise("sub", {entropy, steps.pointwise("mul", {x->at(1), x->at(0)})}));
    } else if (name == "l1_loss") {
        steps.finish(steps.pointwise("abs", {steps.pointwise("sub", *x)}));
    } else {
        steps.finish(steps.pointwise("sub", *x));
    }
    return true;
}

/// Cross-entropy of rows with the number of a class each: log softmax, then the kernel of nll_loss.
/// Source: aten/src/ATen/native/LossNLL.cpp (2.5).
bool append_cross_entropy(Graph& graph, const AtenCall& call) {
    const auto x = operands_of(graph, call, {"self", "target"});
    const bool summed = call.integer("reduction", 1) != 0 && call.find("label_smoothing") == nullptr;
    if (!x || !summed || is_float(graph.tensors[x->at(1)].dtype) || graph.tensors[x->at(0)].shape.size() != 2)
        return false;
    const Tensor& scores = graph.tensors[x->at(0)];
    const TensorId logs = intermediate(graph, call, scores.dtype, scores.shape);
    append_op(graph, call, OpKind::log_softmax, {x->at(0)}, {logs}, {{"axis", 1}});
    Steps(graph, call).reduce("nll_loss", {x->at(1)}, {}, call.outputs[0]);
    return true;
}

/// Source: aten/src/ATen/native/Loss.cpp, triplet_margin_loss (2.5): two distances of three kernels and four more.
bool append_triplet_loss(Graph& graph, const AtenCall& call) {
    const auto x = operands_of(graph, call, {"anchor", "positive", "negative"});
    if (!x || call.integer("reduction", 1) == 0) return false;
    Steps steps(graph, call);
    const TensorId near = steps.distance(x->at(0), x->at(1));
    TensorId far = steps.distance(x->at(0), x->at(2));
    if (call.integer("swap", 0) != 0) far = steps.pointwise("min", {far, steps.distance(x->at(1), x->at(2))});
    steps.finish(steps.pointwise("clamp", {steps.pointwise("sub", {steps.pointwise("add", {near}), far})}));
    return true;
}

void append_mask_lookup(Graph& graph, const AtenCall& call) {
    const AtenArgument* indices = call.find("indices");
    if (!indices) return;
    for (const TensorId index : indices->tensors) {
        if (index == no_tensor || graph.tensors[index].dtype != DType::boolean) continue;
        const Tensor& mask = graph.tensors[index];
        const TensorId positions = intermediate(graph, call, DType::i64, mask.shape);
        append_op(graph, call, OpKind::nonzero, {index}, {positions});
    }
}

}  // namespace ftax
