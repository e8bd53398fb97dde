#include <algorithm>
#include <cmath>

#include "graphs/ir/canonical/patterns.hpp"

namespace ftax::canonical {
namespace {

constexpr std::size_t longest_chain = 12;

bool near(std::optional<double> value, double wanted) {
    return value && std::fabs(*value - wanted) < 1e-3;
}

/// Collects the elementwise operators between `tensor` and `x`; returns false if they read any other tensor.
bool collect_cone(const Rewriter& r, TensorId tensor, TensorId x, std::vector<OpId>& group) {
    std::vector<TensorId> open{tensor};
    while (!open.empty()) {
        const TensorId at = open.back();
        open.pop_back();
        if (at == x || (at != no_tensor && r.tensor(at).role == TensorRole::constant)) continue;
        const OpId producer = r.producer(at);
        if (!r.is(producer, OpKind::pointwise)) return false;
        if (std::ranges::find(group, producer) != group.end()) continue;
        if (group.size() == longest_chain) return false;
        group.push_back(producer);
        for (const TensorId input : r.op(producer).inputs) open.push_back(input);
    }
    return true;
}

/// What a product with a constant, or a division by one, multiplies by; nullopt for any other operator.
std::optional<double> scale_of(const Rewriter& r, OpId id) {
    const bool divides = r.is(id, "div");
    const auto scalar = divides || r.is(id, "mul") ? r.scalar(id) : std::nullopt;
    return scalar && divides ? 1 / *scalar : scalar;
}

/// GELU: x · ½ · (1 + erf(x/√2)) or x · ½ · (1 + tanh(√(2/π)(x + 0.044715 x³))), in any order of multiplication.
void match_gelu(Rewriter& r, OpId anchor, SpelledOut spelled_out) {
    const OpId plus_one = r.sole_reader(r.op(anchor).outputs[0]);
    if (!r.is(plus_one, "add") || !near(r.scalar(plus_one), 1)) return;
    std::vector<OpId> group{anchor, plus_one};
    TensorId x = no_tensor;
    double factor = 1;
    OpId last = plus_one;
    while (x == no_tensor || std::fabs(factor - 0.5) > 1e-3) {
        const TensorId at = r.op(last).outputs[0];
        const OpId next = r.sole_reader(at);
        if (const auto scale = scale_of(r, next); scale && (r.is(next, "mul") || r.op(next).inputs[0] == at)) {
            factor *= *scale;
        } else if (r.is(next, "mul") && x == no_tensor) {
            x = r.other(next, at);
            // The half may have been taken of x already.
            const OpId halved = r.producer(x);
            if (const auto half = scale_of(r, halved); near(half, 0.5) && r.sole_reader(x) == next) {
                factor *= *half;
                group.push_back(halved);
                x = r.variable(halved);
            }
        } else {
            return;
        }
        group.push_back(next);
        last = next;
    }
    const std::size_t before = group.size();
    if (x == no_tensor || !collect_cone(r, r.op(anchor).inputs[0], x, group) || group.size() == before) return;
    if (!is_closed(r, group, last)) return;
    if (spelled_out == SpelledOut::keep && std::ranges::any_of(group, [&](OpId id) { return r.is(id, "pow"); })) return;
    r.replace(last, group, OpKind::pointwise, {x}, {{"function", "gelu"}});
}

/// x · g(x) for a function g of its own: sigmoid → silu, hardsigmoid → hardswish; with `then`, x · then(g(x)): mish.
void match_gate(Rewriter& r, OpId anchor, std::string_view result, std::string_view then = "") {
    const TensorId x = r.op(anchor).inputs[0];
    std::vector<OpId> group{anchor};
    if (!then.empty()) group.push_back(r.sole_reader(r.op(anchor).outputs[0]));
    if (!then.empty() && !r.is(group.back(), then)) return;
    const TensorId gate = r.op(group.back()).outputs[0];
    const OpId product = r.sole_reader(gate);
    if (!r.is(product, "mul") || r.other(product, gate) != x) return;
    group.push_back(product);
    r.replace(product, group, OpKind::pointwise, {x}, {{"function", std::string(result)}});
}

/// relu6(x + 3) / 6, alone (hardsigmoid) or times x before or after the division (hardswish).
void match_hardswish(Rewriter& r, OpId anchor) {
    const OpId plus_three = r.producer(r.op(anchor).inputs[0]);
    if (!r.is(plus_three, "add") || !near(r.scalar(plus_three), 3)) return;
    if (r.sole_reader(r.op(anchor).inputs[0]) != anchor) return;
    const TensorId x = r.variable(plus_three);
    std::vector<OpId> group{plus_three, anchor};
    bool divided = false;
    bool multiplied = false;
    OpId last = anchor;
    for (int step = 0; step < 2; ++step) {
        const TensorId at = r.op(last).outputs[0];
        const OpId next = r.sole_reader(at);
        if (next == no_op) break;
        const auto scalar = r.scalar(next);
        if (!divided && ((r.is(next, "div") && near(scalar, 6) && r.op(next).inputs[0] == at) ||
                         (r.is(next, "mul") && near(scalar, 1.0 / 6)))) {
            divided = true;
        } else if (!multiplied && r.is(next, "mul") && r.other(next, at) == x) {
            multiplied = true;
        } else {
            break;
        }
        group.push_back(next);
        last = next;
    }
    if (!divided) return;
    r.replace(last, group, OpKind::pointwise, {x}, {{"function", multiplied ? "hardswish" : "hardsigmoid"}});
}

}  // namespace

bool is_closed(const Rewriter& r, const std::vector<OpId>& group, OpId last) {
    for (const OpId id : group) {
        if (id == last) continue;
        for (const OpId reader : r.readers(r.op(id).outputs[0]))
            if (std::ranges::find(group, reader) == group.end()) return false;
    }
    return true;
}

void activations(Rewriter& r, SpelledOut spelled_out) {
    for (OpId id = 0; id < r.op_count(); ++id) {
        if (!r.is(id, OpKind::pointwise)) continue;
        const std::string_view function = r.op(id).text("function");
        if (function == "erf" || function == "tanh") {
            match_gelu(r, id, spelled_out);
        } else if (function == "sigmoid") {
            match_gate(r, id, "silu");
        } else if (function == "hardsigmoid") {
            match_gate(r, id, "hardswish");
        } else if (function == "relu6") {
            match_hardswish(r, id);
        } else if (function == "softplus") {
            match_gate(r, id, "mish", "tanh");
        }
    }
}

}  // namespace ftax::canonical
