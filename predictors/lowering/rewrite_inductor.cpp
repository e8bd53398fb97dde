#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "predictors/lowering/rewrites.hpp"
#include "src/core/operands.hpp"
#include "src/core/rewriting/graph_edits.hpp"

// What Inductor makes of a graph: Triton kernels between library calls, and NHWC convolutions.

namespace ftax::rewrites {
namespace {

bool may_be_generated(const Op& op) {
    using enum OpKind;
    if (op.is(resize)) return op.source.find("_aa") == op.source.npos;  // no decomposition smooths
    return op.is(pointwise, cast, fill, softmax, log_softmax, batch_norm, layer_norm, rms_norm, group_norm,
                 instance_norm, reduce, global_pool, embedding, pad, copy, concat, pool);
}

/// Windows read each value of their input several times, so that it is stored first.
bool reads_stored_values(const Op& op) {
    return op.kind == OpKind::pool || op.kind == OpKind::resize;
}

/// Few parts are chosen from by those that read them, more are joined first.
/// Source: torch/_inductor/lowering.py, cat (MAX_COMPLEX_POINTWISE_CAT).
bool is_stored_concatenation(const Op& op) {
    return op.kind == OpKind::concat && op.inputs.size() > 8;
}

/// Activations that decompose into several operators of their operand, which they widen to f32 first.
/// Source: torch/_refs/nn/functional, torch/_decomp/decompositions.py (pw_cast_for_opmath).
bool reads_operand_twice(const Op& op) {
    constexpr std::array<std::string_view, 5> functions{"silu", "gelu", "gelu_tanh", "hardswish", "mish"};
    return op.kind == OpKind::pointwise &&
           std::find(functions.begin(), functions.end(), op.text("function")) != functions.end();
}

/// Groups of operators that one kernel does, each led by its last operator.
class Grouping {
  public:
    explicit Grouping(Graph& graph) : graph_(graph), leader_(graph.ops.size()), members_(graph.ops.size()) {
        assign_producers(graph);
        readers_.resize(graph.tensors.size());
        for (OpId id = 0; id < graph.ops.size(); ++id) {
            leader_[id] = id;
            members_[id] = {id};
            for (const TensorId input : graph.ops[id].inputs) {
                if (input != no_tensor) readers_[input].push_back(id);
            }
        }
        is_output_.assign(graph.tensors.size(), false);
        for (const TensorId output : graph.outputs) is_output_[output] = true;
        for (OpId id = 0; id < graph.ops.size(); ++id) {
            if (may_be_generated(graph.ops[id])) join_producers(id);
        }
    }

    void rewrite() {
        std::vector<bool> removed(graph_.ops.size(), false);
        for (OpId id = 0; id < graph_.ops.size(); ++id) {
            if (!may_be_generated(graph_.ops[id]) || leader_[id] != id) continue;
            Op fused = fused_operator(id, removed);
            for (const OpId member : members_[id]) removed[member] = member != id;
            graph_.ops[id] = std::move(fused);
        }
        erase(graph_, removed);
    }

  private:
    /// The operator that computes what a tensor is a view of; no_op for inputs and weights.
    OpId source_of(TensorId tensor) const {
        return tensor == no_tensor ? no_op : graph_.tensors[viewed(graph_, tensor)].producer;
    }

    /// Calls visit(reader) for each operator that reads a tensor or a view of it.
    template <class Visit>
    void each_reader(TensorId tensor, const Visit& visit) const {
        for (const OpId id : readers_[tensor]) {
            if (is_view(graph_.ops[id])) {
                for (const TensorId view : graph_.ops[id].outputs) each_reader(view, visit);
            } else {
                visit(id);
            }
        }
    }

    /// Whether the group of `producer` can wait until `reader` runs.
    bool can_wait(OpId producer, OpId reader) const {
        bool can = true;
        for (const OpId member : members_[leader_[producer]]) {
            for (const TensorId output : graph_.ops[member].outputs) {
                each_reader(output, [&](OpId id) {
                    const bool inside = leader_[id] == leader_[producer] || leader_[id] == leader_[reader];
                    can = can && (inside ? !reads_stored_values(graph_.ops[id]) : id > reader);
                });
            }
        }
        return can;
    }

    /// Whether a parameter is an operand like others (layer scale, position embedding), which types follow.
    bool reads_parameter(const Op& op) const {
        return (op.kind == OpKind::pointwise || op.kind == OpKind::concat) &&
               std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
                   if (input == no_tensor) return false;
                   const Tensor& tensor = graph_.tensors[viewed(graph_, input)];
                   return tensor.role == TensorRole::weight && !tensor.shape.empty();
               });
    }

    /// Whether the operator is an activation whose operand is a value to store, in f32, when two kernels need it: a
    /// norm reads five. Source: torch/_inductor/ir.py, should_realize_on_reuse (realize_reads_threshold is 4).
    bool stores_operand(OpId id) const {
        const Op& op = graph_.ops[id];
        if (!reads_operand_twice(op)) return false;
        const OpId producer = source_of(op.inputs[0]);
        return producer != no_op && graph_.ops[producer].is(OpKind::batch_norm, OpKind::layer_norm, OpKind::group_norm);
    }

    void join_producers(OpId reader) {
        if (reads_stored_values(graph_.ops[reader])) return;
        for (const TensorId input : graph_.ops[reader].inputs) {
            const OpId producer = source_of(input);
            // Padding iterates over other elements than a kernel that stores its operand.
            if (producer != no_op && graph_.ops[reader].kind == OpKind::pad && stores_operand(producer)) continue;
            if (producer != no_op && is_stored_concatenation(graph_.ops[producer])) continue;
            if (producer == no_op || !may_be_generated(graph_.ops[producer]) || leader_[producer] == leader_[reader] ||
                !can_wait(producer, reader))
                continue;
            std::vector<OpId> joined = std::move(members_[leader_[producer]]);
            members_[leader_[producer]].clear();
            for (const OpId member : joined) leader_[member] = reader;
            members_[reader].insert(members_[reader].begin(), joined.begin(), joined.end());
        }
    }

    bool is_read_outside(TensorId tensor, OpId leader) const {
        bool outside = is_output_[tensor];
        for (const OpId id : readers_[tensor]) {
            if (!is_view(graph_.ops[id])) {
                outside = outside || leader_[id] != leader;
                continue;
            }
            for (const TensorId view : graph_.ops[id].outputs) outside = outside || is_read_outside(view, leader);
        }
        return outside;
    }

    /// Whether generated kernels alone read the tensor.
    bool is_read_by_generated(TensorId tensor) const {
        bool by_generated = !is_output_[tensor];
        each_reader(tensor, [&](OpId reader) { by_generated = by_generated && may_be_generated(graph_.ops[reader]); });
        return by_generated;
    }

    void remove_views(TensorId tensor, std::vector<bool>& removed) const {
        for (const OpId id : readers_[tensor]) {
            if (!is_view(graph_.ops[id])) continue;
            removed[id] = true;
            for (const TensorId view : graph_.ops[id].outputs) remove_views(view, removed);
        }
    }

    Op fused_operator(OpId leader, std::vector<bool>& removed) {
        const Op& last = graph_.ops[leader];
        Op fused{.kind = OpKind::pointwise,
                 .name = last.name,
                 .source = {},
                 .module = last.module,
                 .inputs = {},
                 .outputs = {},
                 .attributes = {{"function", std::string(fused_function)}, {std::string(generated), std::int64_t{1}}}};
        std::vector<std::int64_t> full, looked_up;
        bool by_parameter = false;
        for (const OpId member : members_[leader]) {
            const Op& op = graph_.ops[member];
            append_lookups(graph_, op, looked_up);
            by_parameter = by_parameter || reads_parameter(op);
            fused.source += (fused.source.empty() ? "triton: " : "+") + op.source;
            for (const TensorId input : op.inputs) {
                if (input == no_tensor) continue;
                const OpId source = source_of(input);
                if (source != no_op && leader_[source] == leader) continue;
                if (std::find(fused.inputs.begin(), fused.inputs.end(), input) == fused.inputs.end())
                    fused.inputs.push_back(input);
                leave_bias(source);
            }
            for (const TensorId output : op.outputs) {
                if (is_read_outside(output, leader)) {
                    if (stores_operand(member) && is_read_by_generated(output))
                        full.push_back(static_cast<std::int64_t>(fused.outputs.size()));
                    fused.outputs.push_back(output);
                } else {
                    remove_views(output, removed);
                }
            }
        }
        if (fused.outputs.empty()) fused.outputs = last.outputs;
        if (by_parameter) fused.attributes.push_back({std::string(parameter_operand), std::int64_t{1}});
        if (!looked_up.empty()) fused.attributes.push_back({std::string(lookups), std::move(looked_up)});
        if (!full.empty()) fused.attributes.push_back({std::string(full_outputs), std::move(full)});
        return fused;
    }

    /// The bias of a product that only generated kernels read is added there.
    /// Source: torch/_inductor/kernel/conv.py ("peel off the bias"), fx_passes/post_grad.py (unfuse_bias_add).
    void leave_bias(OpId id) {
        if (id == no_op) return;
        Op& op = graph_.ops[id];
        const bool has_bias = op.kind == OpKind::conv || op.kind == OpKind::conv_transpose || op.kind == OpKind::linear;
        if (!has_bias || op.inputs.size() < 3 || !op.text(epilogue).empty()) return;
        if (is_read_by_generated(op.outputs[0])) op.inputs.resize(2);
    }

    Graph& graph_;
    std::vector<OpId> leader_;
    std::vector<std::vector<OpId>> members_;  ///< of leaders, in order
    std::vector<std::vector<OpId>> readers_;
    std::vector<bool> is_output_;
};

}  // namespace

void append_lookups(Graph& graph, const Op& op, std::vector<std::int64_t>& pairs) {
    if (op.kind != OpKind::embedding && op.kind != OpKind::gather) return;
    if (op.inputs.empty() || op.inputs[0] == no_tensor || op.outputs.empty()) return;
    TensorId rows = op.outputs[0];
    const Tensor& table = graph.tensors[op.inputs[0]];
    const TensorId indices = op.inputs.size() > 1 ? op.inputs[1] : no_tensor;
    // A bag reads more rows than it writes.
    if (op.kind == OpKind::embedding && indices != no_tensor && table.known_shape && table.shape.size() > 1 &&
        graph.tensors[indices].known_shape && !is_float(graph.tensors[indices].dtype)) {
        Tensor read{.name = op.name + "/rows", .dtype = table.dtype};
        read.shape = graph.tensors[indices].shape;
        read.shape.insert(read.shape.end(), table.shape.begin() + 1, table.shape.end());
        rows = static_cast<TensorId>(graph.tensors.size());
        graph.tensors.push_back(std::move(read));
    }
    pairs.push_back(static_cast<std::int64_t>(op.inputs[0]));
    pairs.push_back(static_cast<std::int64_t>(rows));
}

void fuse_into_readers(Graph& graph) {
    Grouping(graph).rewrite();
}

bool gains_from_channels_last(const Graph& graph) {
    constexpr double grouped = 1.358, narrowing = 0.725, small = 0.783, usual = 0.823;
    const auto value = [&](const Tensor& tensor, std::size_t i) {
        return i < tensor.shape.size()
                   ? static_cast<double>(graph.expressions.constant_value(tensor.shape[i]).value_or(1))
                   : 1.0;
    };
    double work = 0, weighed = 0;
    std::size_t convolutions = 0;
    for (const Op& op : graph.ops) {
        if (op.kind != OpKind::conv || graph.tensors[op.inputs[1]].shape.size() != 4) continue;
        ++convolutions;
        const Tensor& filter = graph.tensors[op.inputs[1]];
        const Tensor& result = graph.tensors[op.outputs[0]];
        const double out = value(filter, 0), in = value(filter, 1);
        const double flops = out * in * value(filter, 2) * value(filter, 3) * value(result, 2) * value(result, 3);
        const bool in_groups = op.integer("groups", 1) > 1 && in > 1;
        work += flops;
        weighed += flops * (in_groups                               ? grouped
                            : out * 2 <= in && value(filter, 2) > 1 ? narrowing
                            : out <= 64 && in <= 64                 ? small
                                                                    : usual);
    }
    // A graph of hardly any convolutions is left as it is.
    constexpr std::size_t operators_per_convolution = 300;
    return convolutions > 0 && graph.ops.size() < operators_per_convolution * convolutions && weighed <= work;
}

void convert_layouts_at_edges(Graph& graph) {
    std::vector<Op> copies;
    const auto convert = [&](TensorId from, std::vector<Expression> strides, const std::string& name) {
        Tensor converted = graph.tensors[from];
        converted.name += "/" + name;
        converted.role = TensorRole::activation;
        converted.strides = std::move(strides);
        graph.tensors.push_back(std::move(converted));
        const auto to = static_cast<TensorId>(graph.tensors.size() - 1);
        copies.push_back({.kind = OpKind::copy, .name = graph.tensors[to].name, .inputs = {from}, .outputs = {to}});
        return to;
    };
    for (const TensorId input : graph.inputs) {
        if (graph.tensors[input].strides.empty()) continue;
        const TensorId converted = convert(input, std::exchange(graph.tensors[input].strides, {}), "channels_last");
        for (Op& op : graph.ops) std::replace(op.inputs.begin(), op.inputs.end(), input, converted);
    }
    graph.ops.insert(graph.ops.begin(), copies.begin(), copies.end());
    copies.clear();
    assign_producers(graph);
    for (TensorId& output : graph.outputs) {
        const OpId producer = graph.tensors[output].producer;
        if (producer != no_op && graph.ops[producer].kind == OpKind::conv && !graph.tensors[output].strides.empty())
            output = convert(output, {}, "contiguous");
    }
    graph.ops.insert(graph.ops.end(), copies.begin(), copies.end());
    assign_producers(graph);
}

}  // namespace ftax::rewrites
