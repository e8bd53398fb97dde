#include <optional>

#include "graphs/ir/canonical/patterns.hpp"

namespace ftax::canonical {
namespace {

/// Returns the producer of `tensor` if it is a mean over the last axes, keeping dims; else no_op.
OpId mean_of_last_axes(const Rewriter& r, TensorId tensor) {
    const OpId id = r.producer(tensor);
    if (!r.is(id, OpKind::reduce) || r.op(id).text("function") != "mean") return no_op;
    const auto axes = r.op(id).integers("axes");
    const auto rank = static_cast<std::int64_t>(r.tensor(r.op(id).inputs[0]).shape.size());
    for (std::size_t i = 0; i < axes.size(); ++i)
        if (axes[i] != rank - static_cast<std::int64_t>(axes.size() - i)) return no_op;
    return axes.empty() ? no_op : id;
}

/// The operand of a square (x², x·x); no_tensor otherwise.
TensorId squared(const Rewriter& r, OpId id) {
    if (!r.is(id, OpKind::pointwise)) return no_tensor;
    const std::vector<TensorId>& inputs = r.op(id).inputs;
    const bool product = r.is(id, "mul") && inputs.size() == 2 && inputs[0] == inputs[1];
    return product || (r.is(id, "pow") && r.scalar(id) == 2.0) ? inputs[0] : no_tensor;
}

/// 1/√(mean(v²) + ε) applied to a tensor, found from the mean.
struct Scaling {
    std::vector<OpId> group;  ///< square, mean, add, sqrt, [reciprocal], and the division or product
    OpId last = no_op;
    TensorId scaled = no_tensor;
};

std::optional<Scaling> scaling_by_root(const Rewriter& r, OpId mean) {
    Scaling s;
    const OpId square = r.producer(r.op(mean).inputs[0]);
    const OpId plus = r.sole_reader(r.op(mean).outputs[0]);
    if (!r.is(plus, "add") || !r.scalar(plus)) return std::nullopt;
    const OpId root = r.sole_reader(r.op(plus).outputs[0]);
    s.group = {square, mean, plus, root};
    OpId inverse = no_op;
    if (r.is(root, "sqrt")) {
        const OpId next = r.sole_reader(r.op(root).outputs[0]);
        if (r.is(next, "reciprocal") || (r.is(next, "div") && r.scalar(next) == 1.0)) {
            inverse = next;
            s.group.push_back(next);
        } else if (r.is(next, "div") && r.op(next).inputs.size() == 2 &&
                   r.op(next).inputs[1] == r.op(root).outputs[0]) {
            s.last = next;
            s.scaled = r.op(next).inputs[0];
        }
    } else if (r.is(root, "rsqrt") || (r.is(root, "pow") && r.scalar(root) == -0.5)) {
        inverse = root;
    }
    if (inverse != no_op) {
        const TensorId factor = r.op(inverse).outputs[0];
        s.last = r.sole_reader(factor);
        if (!r.is(s.last, "mul")) return std::nullopt;
        s.scaled = r.other(s.last, factor);
    }
    if (s.last == no_op || s.scaled == no_tensor) return std::nullopt;
    s.group.push_back(s.last);
    return s;
}

/// Takes in a following product with (or sum of) a parameter; returns the parameter.
TensorId absorb(const Rewriter& r, std::string_view function, std::vector<OpId>& group, OpId& last) {
    const TensorId at = r.op(last).outputs[0];
    const OpId next = r.sole_reader(at);
    if (!r.is(next, function)) return no_tensor;
    const TensorId parameter = r.other(next, at);
    if (!r.is_parameter(parameter) || r.tensor(parameter).shape.empty()) return no_tensor;
    group.push_back(next);
    last = next;
    return parameter;
}

void match_norm(Rewriter& r, OpId mean, SpelledOut spelled_out, const TakenApart& taken_apart) {
    const TensorId base = squared(r, r.producer(r.op(mean).inputs[0]));
    if (base == no_tensor || r.sole_reader(r.op(mean).inputs[0]) != mean) return;
    auto scaling = scaling_by_root(r, mean);
    if (!scaling) return;
    std::vector<OpId>& group = scaling->group;
    OpId last = scaling->last;
    const auto axis = r.op(mean).integers("axes")[0];

    // LayerNorm squares and scales x − mean(x), RMSNorm x itself.
    const OpId difference = r.producer(base);
    const bool subtracts = r.is(difference, "sub") && r.op(difference).inputs.size() == 2;
    const OpId inner_mean = subtracts ? mean_of_last_axes(r, r.op(difference).inputs[1]) : no_op;
    const bool centred = inner_mean != no_op && r.op(inner_mean).inputs[0] == r.op(difference).inputs[0];
    if (centred) {
        group.insert(group.end(), {difference, inner_mean});
        if (scaling->scaled != base) {  // older exporters subtract twice
            const OpId again = r.producer(scaling->scaled);
            if (!r.is(again, "sub") || r.op(again).inputs != r.op(difference).inputs) return;
            group.push_back(again);
        }
    } else if (scaling->scaled != base) {
        return;
    }
    std::vector<TensorId> inputs{centred ? r.op(difference).inputs[0] : base};
    const TensorId weight = absorb(r, "mul", group, last);
    if (weight != no_tensor) inputs.push_back(weight);
    if (centred && weight != no_tensor) {
        const TensorId bias = absorb(r, "add", group, last);
        if (bias != no_tensor) inputs.push_back(bias);
    }
    if (!is_closed(r, group, last)) return;
    const OpKind kind = centred ? OpKind::layer_norm : OpKind::rms_norm;
    if (!centred && spelled_out == SpelledOut::keep && !taken_apart(r.op(last), kind)) return;
    r.replace(last, group, kind, std::move(inputs), {{"axis", axis}});
}

/// A group norm written as an instance norm of [batch, groups, rest] and what scales and shifts the channels: ONNX has
/// no operator for it before opset 21. Source: torch.onnx, symbolic_opset9.py and torch_lib (group_norm).
void match_group_norm(Rewriter& r, OpId norm) {
    const OpId grouped = r.producer(r.op(norm).inputs[0]);
    const OpId restored = r.sole_reader(r.op(norm).outputs[0]);
    if (!r.is(grouped, OpKind::reshape) || !r.is(restored, OpKind::reshape)) return;
    if (r.sole_reader(r.op(grouped).outputs[0]) != norm) return;
    const TensorId x = r.op(grouped).inputs[0];
    const std::vector<Expression>& shape = r.tensor(r.op(grouped).outputs[0]).shape;
    if (shape.size() != 3 || r.tensor(x).shape != r.tensor(r.op(restored).outputs[0]).shape) return;
    const auto groups = r.graph().expressions.constant_value(shape[1]);
    if (!groups) return;
    std::vector<OpId> group{grouped, norm, restored};
    OpId last = restored;
    std::vector<TensorId> inputs{x};
    for (const std::string_view function : {"mul", "add"}) {
        const TensorId parameter = absorb(r, function, group, last);
        if (parameter == no_tensor) break;
        inputs.push_back(parameter);
    }
    r.replace(last, group, OpKind::group_norm, std::move(inputs), {{"groups", *groups}});
}

}  // namespace

void norms(Rewriter& r, SpelledOut spelled_out, const TakenApart& taken_apart) {
    for (OpId id = 0; id < r.op_count(); ++id) {
        const bool mean = r.is(id, OpKind::reduce) && mean_of_last_axes(r, r.op(id).outputs[0]) == id;
        if (mean) match_norm(r, id, spelled_out, taken_apart);
    }
    for (OpId id = 0; id < r.op_count(); ++id)
        if (r.is(id, OpKind::instance_norm)) match_group_norm(r, id);
    for (OpId id = 0; id < r.op_count(); ++id) {  // ONNX has no rsqrt
        if (!r.is(id, "sqrt")) continue;
        const OpId inverse = r.sole_reader(r.op(id).outputs[0]);
        if (!r.is(inverse, "reciprocal")) continue;
        r.replace(inverse, {id, inverse}, OpKind::pointwise, r.op(id).inputs, {{"function", std::string("rsqrt")}});
    }
}

}  // namespace ftax::canonical
