#include "graphs/ir/rewriting/rewriter.hpp"

#include <algorithm>

#include "graphs/ir/rewriting/graph_edits.hpp"

namespace ftax {

Rewriter::Rewriter(Graph& graph)
    : graph_(graph),
      removed_(graph.ops.size(), false),
      readers_(graph.tensors.size()),
      is_output_(graph.tensors.size(), false) {
    for (OpId id = 0; id < graph.ops.size(); ++id)
        for (const TensorId input : present(graph.ops[id].inputs))
            if (readers_[input].empty() || readers_[input].back() != id) readers_[input].push_back(id);
    for (const TensorId output : graph.outputs) is_output_[output] = true;
}

OpId Rewriter::producer(TensorId tensor) const {
    if (tensor == no_tensor) return no_op;
    const OpId op = graph_.tensors[tensor].producer;
    return op != no_op && removed_[op] ? no_op : op;
}

OpId Rewriter::sole_reader(TensorId tensor) const {
    if (tensor == no_tensor || is_output_[tensor] || readers_[tensor].size() != 1) return no_op;
    return readers_[tensor].front();
}

bool Rewriter::is(OpId op, std::string_view function) const {
    return is(op, OpKind::pointwise) && graph_.ops[op].text("function") == function;
}

std::optional<double> Rewriter::scalar(OpId op) const {
    for (const Attribute& attribute : graph_.ops[op].attributes) {
        if (attribute.name != "scalar") continue;
        if (const auto* real = std::get_if<double>(&attribute.value)) return *real;
        if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) return static_cast<double>(*integer);
    }
    return std::nullopt;
}

TensorId Rewriter::variable(OpId op) const {
    TensorId found = no_tensor;
    for (const TensorId input : present(graph_.ops[op].inputs)) {
        if (graph_.tensors[input].role == TensorRole::constant) continue;
        if (found != no_tensor && found != input) return no_tensor;
        found = input;
    }
    return found;
}

TensorId Rewriter::other(OpId op, TensorId known) const {
    const std::vector<TensorId>& inputs = graph_.ops[op].inputs;
    if (inputs.size() != 2) return no_tensor;
    if (inputs[0] == known) return inputs[1];
    return inputs[1] == known ? inputs[0] : no_tensor;
}

bool Rewriter::is_parameter(TensorId tensor) const {
    return tensor != no_tensor &&
           (graph_.tensors[tensor].role == TensorRole::weight || graph_.tensors[tensor].role == TensorRole::constant);
}

void Rewriter::set_inputs(OpId op, std::vector<TensorId> inputs) {
    for (const TensorId input : present(graph_.ops[op].inputs)) std::erase(readers_[input], op);
    graph_.ops[op].inputs = std::move(inputs);
    for (const TensorId input : present(graph_.ops[op].inputs)) {
        auto& readers = readers_[input];
        const auto place = std::lower_bound(readers.begin(), readers.end(), op);
        if (place == readers.end() || *place != op) readers.insert(place, op);
    }
}

void Rewriter::replace(OpId last, const std::vector<OpId>& group, OpKind kind, std::vector<TensorId> inputs,
                       std::vector<Attribute> attributes) {
    std::vector<OpId> ordered = group;
    std::ranges::sort(ordered);
    std::string source;
    for (const OpId id : ordered) {
        if (!source.empty()) source += '+';
        source += graph_.ops[id].source;
    }
    for (const OpId id : ordered) {
        if (id == last) continue;
        set_inputs(id, {});
        removed_[id] = true;
    }
    set_inputs(last, std::move(inputs));
    Op& op = graph_.ops[last];
    op.kind = kind;
    op.source = std::move(source);
    op.attributes = std::move(attributes);
}

void Rewriter::finish() {
    std::vector<bool> needed(graph_.tensors.size(), false);
    for (const TensorId id : graph_.inputs) needed[id] = true;
    for (const TensorId id : graph_.outputs) needed[id] = true;
    const bool all = graph_.outputs.empty();
    for (OpId id = static_cast<OpId>(graph_.ops.size()); id-- > 0;) {
        const Op& op = graph_.ops[id];
        if (!all && std::ranges::none_of(op.outputs, [&](TensorId t) { return needed[t]; })) removed_[id] = true;
        if (removed_[id]) continue;
        for (const TensorId input : present(op.inputs)) needed[input] = true;
        for (const TensorId output : op.outputs) needed[output] = true;
    }
    std::vector<TensorId> moved(graph_.tensors.size(), no_tensor);
    TensorId kept = 0;
    for (TensorId id = 0; id < graph_.tensors.size(); ++id)
        if (needed[id]) moved[id] = kept++;
    auto is_needed = needed.begin();
    std::erase_if(graph_.tensors, [&](const Tensor&) { return !*is_needed++; });
    const auto renumber = [&](std::vector<TensorId>& ids) {
        for (TensorId& id : ids) id = id == no_tensor ? no_tensor : moved[id];
    };
    renumber(graph_.inputs);
    renumber(graph_.outputs);
    for (OpId id = 0; id < graph_.ops.size(); ++id) {
        if (removed_[id]) continue;
        renumber(graph_.ops[id].inputs);
        renumber(graph_.ops[id].outputs);
    }
    erase(graph_, removed_);
}

}  // namespace ftax
