#include "graphs/aten/aten_call.hpp"

#include <fmt/format.h>

#include "graphs/aten/aten_table.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/operands.hpp"

namespace ftax {
namespace {

std::vector<TensorId> operands(const AtenCall& call, const AtenRow* row) {
    std::vector<TensorId> result;
    if (!row || row->operands.empty()) {
        for (const AtenArgument& argument : call.arguments)
            for (const TensorId tensor : present(argument.tensors)) result.push_back(tensor);
        return result;
    }
    for (const std::string_view name : words_of(row->operands)) result.push_back(call.tensor(name));
    while (!result.empty() && result.back() == no_tensor) result.pop_back();
    return result;
}

/// Dropout with a probability of 0 returns its input. Source: aten/src/ATen/native/Dropout.cpp.
bool drops(const AtenCall& call) {
    const AtenArgument* p = call.find("p");
    return !p || p->number.value_or(p->integers.empty() ? 1.0 : static_cast<double>(p->integers[0])) != 0.0;
}

/// The kind of a call where it depends on its arguments and not only on the operator's name.
OpKind refined_kind(const Graph& graph, const AtenCall& call, const AtenRow& row, const std::vector<TensorId>& inputs) {
    const auto name = row.name;
    if (row.kind == OpKind::cast && inputs.size() <= 2 && !inputs.empty() && !call.outputs.empty() &&
        graph.tensors[inputs[0]].dtype == graph.tensors[call.outputs[0]].dtype && name != "_to_copy") {
        return OpKind::identity;  // .to() without effect
    }
    // What nn.Linear calls for two dimensions, and what layers call that keep their weight as [k, n].
    const auto has_rank = [&](TensorId id, std::size_t rank) {
        return id != no_tensor && graph.tensors[id].shape.size() == rank;
    };
    if ((name == "addmm" || name.starts_with("_scaled_mm")) && inputs.size() == 3 && has_rank(inputs[1], 2) &&
        graph.tensors[inputs[1]].role == TensorRole::weight && has_rank(inputs[2], 1))
        return OpKind::linear;
    if ((name == "max" || name == "min") && inputs.size() == 2) return OpKind::pointwise;
    // torch.export writes a number of Python that is computed with as a copy of a tensor without dimensions.
    if (name == "lift_fresh_copy" && !call.outputs.empty() && graph.tensors[call.outputs[0]].shape.empty())
        return OpKind::identity;
    if (row.kind == OpKind::pointwise && inputs.empty()) return OpKind::shape;  // numbers on the host
    if (row.kind == OpKind::identity && call.integer("train", 0) != 0 && drops(call)) return OpKind::pointwise;
    if (row.kind == OpKind::to_host && inputs.empty()) return OpKind::shape;
    return row.kind;
}

/// The number that a tensor is combined with: passes recognise functions that a model spells out by their constants.
void note_scalar_operand(const AtenCall& call, const std::vector<TensorId>& inputs,
                         std::vector<Attribute>& attributes) {
    if (inputs.size() != 1) return;
    const AtenArgument* other = call.find("other");
    if (!other) other = call.find("exponent");
    if (!other) return;
    if (other->number) {
        attributes.push_back({"scalar", *other->number});
    } else if (other->integers.size() == 1) {
        attributes.push_back({"scalar", static_cast<double>(other->integers[0])});
    }
}

}  // namespace

const AtenArgument* AtenCall::find(std::string_view argument) const {
    const auto found = std::ranges::find(arguments, argument, &AtenArgument::name);
    return found == arguments.end() ? nullptr : &*found;
}

TensorId AtenCall::tensor(std::string_view argument) const {
    const AtenArgument* found = find(argument);
    return found && found->tensors.size() == 1 ? found->tensors[0] : no_tensor;
}

std::int64_t AtenCall::integer(std::string_view argument, std::int64_t fallback) const {
    const AtenArgument* found = find(argument);
    return found && found->integers.size() == 1 ? found->integers[0] : fallback;
}

std::span<const std::int64_t> AtenCall::integers(std::string_view argument) const {
    const AtenArgument* found = find(argument);
    return found ? std::span<const std::int64_t>(found->integers) : std::span<const std::int64_t>{};
}

std::vector<std::int64_t> AtenCall::axes(std::string_view argument, std::size_t rank) const {
    return mapped(integers(argument), [&](std::int64_t given) { return axis(given, rank); });
}

std::int64_t AtenCall::axis(std::int64_t axis, std::size_t rank) const {
    const auto dimensions = std::max<std::int64_t>(1, static_cast<std::int64_t>(rank));
    if (axis < -dimensions || axis >= dimensions) fail(fmt::format("dimension {} of {}", axis, rank));
    return axis < 0 ? axis + dimensions : axis;
}

void AtenCall::fail(std::string_view what) const {
    throw_error(ErrorCode::model, "{} ({}): {}", excerpt(name), excerpt(target), what);
}

bool is_known_aten(std::string_view target) noexcept {
    const AtenRow* row = find_aten_row(target);
    return row && (row->kind != OpKind::custom || row->append);
}

void check_room(const Graph& graph, std::uint64_t most, std::string_view node) {
    if (graph.ops.size() < most) return;
    throw_error(ErrorCode::limit, "{}: more than {} operators (--max-nodes)", excerpt(node), most);
}

void append_aten(Graph& graph, const AtenCall& call) {
    const AtenRow* row = find_aten_row(call.target);
    if (row && row->append && row->append(graph, call)) return;
    std::vector<TensorId> inputs = operands(call, row);
    if (!row) {
        append_op(graph, call, OpKind::custom, std::move(inputs), call.outputs);
        return;
    }
    const OpKind kind = refined_kind(graph, call, *row, inputs);
    if (const auto missing = missing_operand({.kind = kind, .inputs = inputs, .outputs = call.outputs}))
        call.fail(*missing);
    if (row->name == "index" || row->name == "index_put") append_mask_lookup(graph, call);
    std::vector<Attribute> attributes;
    const bool known =
        std::ranges::all_of(inputs, [&](TensorId id) { return id == no_tensor || graph.tensors[id].known_shape; });
    if (kind == row->kind && known) row->attributes({{graph, call}, attributes});
    if (kind == OpKind::linear && row->kind == OpKind::matmul) attributes = {{"transposed_weight", std::int64_t{0}}};
    if (kind == OpKind::pointwise) note_scalar_operand(call, inputs, attributes);
    if (!row->function.empty() || kind == OpKind::pointwise) {
        const std::string_view function = row->function.empty() ? row->name : row->function;
        attributes.insert(attributes.begin(), {"function", std::string(function)});
    }
    append_op(graph, call, kind, std::move(inputs), call.outputs, std::move(attributes));
}

}  // namespace ftax
