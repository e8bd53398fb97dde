#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "graphs/ir/canonical/patterns.hpp"
#include "graphs/ir/operands.hpp"

namespace ftax::canonical {

void linear_layers(Rewriter& r) {
    for (OpId id = 0; id < r.op_count(); ++id) {
        if (r.is(id, OpKind::matmul)) {
            const Op& op = r.op(id);
            const bool plain =
                op.inputs.size() == 2 && op.integer("transpose_a", 0) == 0 && op.integer("transpose_b", 0) == 0;
            if (!plain || r.tensor(op.inputs[1]).role != TensorRole::weight || r.tensor(op.inputs[1]).shape.size() != 2)
                continue;
            std::vector<Attribute> attributes = op.attributes;
            attributes.push_back({"transposed_weight", std::int64_t{0}});
            r.replace(id, {id}, OpKind::linear, op.inputs, std::move(attributes));
        }
        if (!r.is(id, OpKind::linear) || r.op(id).inputs.size() != 2) continue;
        const TensorId product = r.op(id).outputs[0];
        const OpId sum = r.sole_reader(product);
        if (!r.is(sum, "add")) continue;
        const TensorId bias = r.other(sum, product);
        if (!r.is_parameter(bias) || r.tensor(bias).shape.size() != 1 || r.tensor(product).shape.empty()) continue;
        if (r.tensor(bias).shape.back() != r.tensor(product).shape.back()) continue;
        r.replace(sum, {id, sum}, OpKind::linear, {r.op(id).inputs[0], r.op(id).inputs[1], bias}, r.op(id).attributes);
    }
}

void global_pools(Rewriter& r) {
    for (OpId id = 0; id < r.op_count(); ++id) {
        if (!r.is(id, OpKind::reduce) || r.op(id).text("function") != "mean") continue;
        const std::size_t rank = r.tensor(r.op(id).inputs[0]).shape.size();
        const auto axes = r.op(id).integers("axes");
        if (rank != 4 || axes.size() != 2 || axes[0] != 2 || axes[1] != 3) continue;
        r.replace(id, {id}, OpKind::global_pool, r.op(id).inputs, {{"function", std::string("average")}});
    }
}

namespace {

/// Operand of a product with a scalar constant.
TensorId scaled_operand(const Rewriter& r, TensorId tensor, std::vector<OpId>& group) {
    const OpId id = r.producer(tensor);
    if (!r.is(id, "mul") || r.readers(tensor).size() != 1) return no_tensor;
    const TensorId operand = r.variable(id);
    const std::vector<TensorId>& inputs = r.op(id).inputs;
    if (inputs.size() != 2 || inputs[0] == inputs[1] || operand == no_tensor) return no_tensor;
    group.push_back(id);
    return operand;
}

bool swaps_last_axes(std::span<const std::int64_t> perm) {
    const std::size_t rank = perm.size();
    for (std::size_t i = 0; i + 2 < rank; ++i)
        if (perm[i] != static_cast<std::int64_t>(i)) return false;
    return rank >= 2 && perm[rank - 1] == static_cast<std::int64_t>(rank - 2) &&
           perm[rank - 2] == static_cast<std::int64_t>(rank - 1);
}

/// Keys enter the product as [.., d, s]; finds or makes the tensor [.., s, d] that they were, taking what turned them
/// into the group. no_tensor when they were not turned by a transposition.
TensorId keys_before_turning(Rewriter& r, TensorId turned, std::vector<OpId>& group) {
    const OpId last = r.producer(turned);
    if (last == no_op || r.readers(turned).size() != 1 || r.tensor(turned).shape.size() < 2) return no_tensor;
    Graph& graph = r.graph();
    std::vector<Expression> wanted = r.tensor(turned).shape;
    std::swap(wanted[wanted.size() - 1], wanted[wanted.size() - 2]);
    if (r.is(last, OpKind::reshape)) {  // batch and heads folded into one axis around the transposition
        const OpId turn = r.producer(r.op(last).inputs[0]);
        if (!r.is(turn, OpKind::transpose) || !swaps_last_axes(r.op(turn).integers("perm"))) return no_tensor;
        const OpId fold = r.producer(r.op(turn).inputs[0]);
        if (!r.is(fold, OpKind::reshape) || r.tensor(r.op(fold).inputs[0]).shape != wanted) return no_tensor;
        if (r.readers(r.op(last).inputs[0]).size() != 1 || r.readers(r.op(turn).inputs[0]).size() != 1)
            return no_tensor;
        group.insert(group.end(), {fold, turn, last});
        return r.op(fold).inputs[0];
    }
    if (!r.is(last, OpKind::transpose)) return no_tensor;
    const auto axes = r.op(last).integers("perm");
    if (swaps_last_axes(axes)) {
        group.push_back(last);
        return r.op(last).inputs[0];
    }
    if (axes.size() != wanted.size()) return no_tensor;  // which axes moved is not said (movedim)
    // One transposition did both: it keeps the part that separates the heads.
    std::vector<std::int64_t> perm(axes.begin(), axes.end());
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    graph.ops[last].attributes = {{"perm", perm}};
    graph.tensors[turned].shape = std::move(wanted);
    return turned;
}

/// Whether nothing outside of the group, which takes in the greatest score of a row before a softmax, reads the tensor.
bool is_inside(const Rewriter& r, TensorId tensor, std::vector<OpId>& group) {
    const auto within = [&](OpId id) { return std::ranges::find(group, id) != group.end(); };
    for (const OpId reader : r.readers(tensor)) {
        if (within(reader)) continue;
        if (!r.is(reader, OpKind::reduce) || !within(r.sole_reader(r.op(reader).outputs[0]))) return false;
        group.push_back(reader);
    }
    const std::vector<TensorId>& outputs = r.graph().outputs;
    return std::ranges::find(outputs, tensor) == outputs.end();
}

/// Walks up from the softmax through elementwise operations on scores: scaling, caps, masks, casts, and sinks.
/// Returns the product that they come from and the mask, no_op where there is no such product.
struct Scores {
    OpId product = no_op;
    TensorId mask = no_tensor;
};
Scores scores_before(const Rewriter& r, OpId softmax, std::vector<OpId>& group) {
    Scores found;
    for (TensorId scores = r.op(softmax).inputs[0]; is_inside(r, scores, group);) {
        const OpId id = r.producer(scores);
        if (r.is(id, OpKind::matmul)) {
            found.product = id;
            return found;
        }
        const bool joins = r.is(id, OpKind::concat), folds = r.is(id, OpKind::reshape);
        if (!joins && !folds && !r.is(id, OpKind::pointwise) && !r.is(id, OpKind::cast)) return found;
        group.push_back(id);
        TensorId before = folds || joins ? r.op(id).inputs[0] : r.variable(id);
        if (before == no_tensor) {  // the operand with the scores' own shape goes on, the other one masks
            for (const TensorId input : r.op(id).inputs) {
                if (input == no_tensor || r.is_parameter(input)) continue;
                const OpId producer = r.producer(input);
                if (before == no_tensor && r.tensor(input).shape == r.tensor(scores).shape &&
                    !r.is(producer, OpKind::expand) && is_inside(r, input, group)) {
                    before = input;
                } else if (std::ranges::find(group, producer) == group.end() &&
                           (found.mask == no_tensor || !differs_between_queries(r.graph(), found.mask))) {
                    found.mask = input;
                }
            }
        }
        if (before == no_tensor) return found;
        scores = before;
    }
    return found;
}

/// Rows that a mask leaves nothing of are NaN and become 0: where(isnan(w), 0, w); no_op where that is not done.
OpId zeros_for_nan(const Rewriter& r, TensorId weights, std::vector<OpId>& group) {
    const std::vector<OpId>& readers = r.readers(weights);
    const auto test = std::ranges::find_if(readers, [&](OpId id) { return r.is(id, "isnan"); });
    if (test == readers.end() || readers.size() != 2) return no_op;
    const OpId choice = readers[test == readers.begin() ? 1 : 0];
    if (!r.is(choice, "where") || r.sole_reader(r.op(*test).outputs[0]) != choice) return no_op;
    group.push_back(*test);
    return choice;
}

/// Follows the weights of a softmax through casts and slices, which join the group, to the product that reads them.
OpId product_behind(const Rewriter& r, OpId softmax, std::vector<OpId>& group) {
    for (OpId id = softmax;;) {
        const TensorId weights = r.op(id).outputs[0];
        if (const OpId choice = zeros_for_nan(r, weights, group); choice != no_op) {
            group.push_back(choice);
            id = choice;
            continue;
        }
        const OpId reader = r.sole_reader(weights);
        if (r.is(reader, OpKind::matmul)) return r.op(reader).inputs[0] == weights ? reader : no_op;
        if (!r.is(reader, OpKind::cast) && !r.is(reader, OpKind::slice)) return no_op;
        group.push_back(reader);
        id = reader;
    }
}

/// Heads of keys or values before each was copied for the heads of queries that read it; `copies` where they were not.
TensorId heads_before_copies(const Rewriter& r, TensorId copies) {
    TensorId found = copies;
    const auto& wanted = r.tensor(copies).shape;
    if (wanted.size() != 4) return found;
    for (OpId id = r.producer(copies); r.is(id, OpKind::reshape) || r.is(id, OpKind::expand) || r.is(id, OpKind::copy);
         id = r.producer(found)) {
        const TensorId input = r.op(id).inputs[0];
        const auto& shape = r.tensor(input).shape;
        if (shape.size() < 4 || !std::equal(shape.end() - 2, shape.end(), wanted.end() - 2)) break;
        found = input;
    }
    return r.tensor(found).shape.size() == 4 ? found : copies;
}

/// The mask itself where an exporter turned true and false into the numbers that are added.
TensorId boolean_mask(const Rewriter& r, TensorId added, std::vector<OpId>& group) {
    const OpId choice = r.producer(added);
    if (!r.is(choice, "where") || r.sole_reader(added) == no_op) return added;
    const TensorId condition = r.variable(choice);
    if (condition == no_tensor || r.tensor(condition).dtype != DType::boolean) return added;
    group.push_back(choice);
    return condition;
}

/// Attributes of the attention that ends with this product.
std::vector<Attribute> attributes_of(const Op& last) {
    std::vector<Attribute> attributes{{"causal", std::int64_t{0}}};
    for (const char* name : {window_attribute, entries_attribute})
        if (const std::int64_t keys = last.integer(name, 0); keys > 0) attributes.push_back({name, keys});
    return attributes;
}

bool match_attention(Rewriter& r, OpId softmax) {
    std::vector<OpId> group{softmax};
    TensorId scores = r.op(softmax).inputs[0];
    TensorId mask = no_tensor;
    const OpId sum = r.producer(scores);
    // An added number is no operand, but an attribute.
    if (r.is(sum, "add") && r.op(sum).inputs.size() == 2 && r.sole_reader(scores) == softmax) {
        const auto& terms = r.op(sum).inputs;
        const bool first = r.is(r.producer(terms[0]), OpKind::matmul);
        scores = terms[first ? 0 : 1];
        mask = terms[first ? 1 : 0];
        group.push_back(sum);
    }
    const OpId product = r.producer(scores);
    if (!r.is(product, OpKind::matmul) || r.readers(scores).size() != 1) return false;
    group.push_back(product);
    const OpId last = product_behind(r, softmax, group);
    if (last == no_op) return false;
    group.push_back(last);
    const TensorId q = scaled_operand(r, r.op(product).inputs[0], group);
    const TensorId turned = scaled_operand(r, r.op(product).inputs[1], group);
    if (q == no_tensor || turned == no_tensor || r.tensor(q).shape.size() < 3) return false;
    const TensorId k = keys_before_turning(r, turned, group);
    if (k == no_tensor) return false;
    std::vector<TensorId> inputs{q, k, r.op(last).inputs[1]};
    if (mask != no_tensor) inputs.push_back(boolean_mask(r, mask, group));
    r.replace(last, group, OpKind::attention, std::move(inputs), attributes_of(r.op(last)));
    return true;
}

/// softmax(scale · q × kᵀ [+ mask]) × v as a model spells it out; with `taken_apart`, as the exporter does.
void match_any_attention(Rewriter& r, OpId softmax, const TakenApart* taken_apart) {
    std::vector<OpId> group{softmax};
    const Scores scores = scores_before(r, softmax, group);
    if (scores.product == no_op || r.op(scores.product).integer("transpose_a", 0) != 0) return;
    const OpId last = product_behind(r, softmax, group);
    if (last == no_op) return;
    if (taken_apart && !(*taken_apart)(r.op(last), OpKind::attention)) return;
    group.insert(group.end(), {scores.product, last});
    const auto unscaled = [&](TensorId operand) {
        const TensorId before = scaled_operand(r, operand, group);
        return before == no_tensor ? operand : before;
    };
    const TensorId q = unscaled(r.op(scores.product).inputs[0]);
    TensorId k = unscaled(r.op(scores.product).inputs[1]);
    if (r.tensor(q).shape.size() < 3) return;
    if (r.op(scores.product).integer("transpose_b", 0) == 0) k = keys_before_turning(r, k, group);
    if (k == no_tensor || r.tensor(k).shape.size() != r.tensor(q).shape.size()) return;
    TensorId v = r.op(last).inputs[1];
    TensorId mask = scores.mask;
    if (!taken_apart) {
        k = heads_before_copies(r, k), v = heads_before_copies(r, v);
    } else if (mask != no_tensor) {
        mask = boolean_mask(r, mask, group);
    }
    std::vector<TensorId> inputs{q, k, v};
    if (mask != no_tensor) inputs.push_back(mask);
    r.replace(last, group, OpKind::attention, std::move(inputs), attributes_of(r.op(last)));
}

}  // namespace

void spelled_out_attention(Rewriter& r) {
    for (OpId id = 0; id < r.op_count(); ++id)
        if (r.is(id, OpKind::softmax)) match_any_attention(r, id, nullptr);
}

void attention(Rewriter& r, const TakenApart& taken_apart) {
    for (OpId id = 0; id < r.op_count(); ++id)
        if (r.is(id, OpKind::softmax) && !match_attention(r, id)) match_any_attention(r, id, &taken_apart);
}

}  // namespace ftax::canonical
