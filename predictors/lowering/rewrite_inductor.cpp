#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graphs/base/checked_math.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/ir/rewriting/graph_edits.hpp"
#include "predictors/lowering/rewrites.hpp"
#include "predictors/lowering/spelling.hpp"

// Inductor's rewrites: Triton kernels between library calls, and NHWC convolutions.

namespace ftax::rewrites {
namespace {

/// Attribute of an operator that ATen's kernel computes.
constexpr std::string_view library_kernel = "library_kernel";

/// Large windows are not unrolled. Source: torch/_inductor/lowering.py, 2.5 to 2.11 (fallback_avg_pool3d,
/// should_fallback_max_pool_with_indices).
bool has_large_window(const Op& op) {
    constexpr std::int64_t most_values = 25;
    std::int64_t values = 1;
    for (const std::int64_t side : op.integers("kernel")) values = checked_multiply(values, side);
    return values > most_values;
}

bool may_be_generated(const Op& op) {
    using enum OpKind;
    if (op.is(resize)) return op.source.find("_aa") == op.source.npos;  // antialiasing has no decomposition
    if (op.is(pool)) return !has_large_window(op) && op.integer(library_kernel, 0) == 0;
    return op.is(pointwise, cast, fill, softmax, log_softmax, batch_norm, layer_norm, rms_norm, group_norm,
                 instance_norm, reduce, global_pool, embedding, pad, copy, concat, cumulative);
}

/// Iteration space of the kernel of a reduction or a scan.
struct Reduction {
    std::vector<Expression> shape;   ///< shape of its result, if it is a tensor
    double results = 1, length = 1;  ///< number of results; elements per result
    bool inner = true;               ///< the elements of a result are contiguous

    [[nodiscard]] double elements() const { return results * length; }
    /// Returns true if few results would leave the card idle: a second kernel then combines partial results.
    /// Source: torch/_inductor/choices.py (reduction_split_factor), ir.py (num_splits), for 108 multiprocessors.
    [[nodiscard]] bool is_split() const {
        constexpr double multiprocessors = 108;
        return inner ? results < 2 * multiprocessors && length > 8192 : results < 64 * multiprocessors && length > 128;
    }
};

/// Attribute of a reduction split off from a norm or a larger reduction: its readers run in another kernel.
constexpr std::string_view statistics = "statistics";
enum Statistics : std::int64_t { whole, partial, joined };

/// Returns the elements of a shape; symbolic dimensions count as 64.
double elements_of(const Graph& graph, const std::vector<Expression>& shape) {
    double elements = 1;
    for (const Expression size : shape)
        elements *= static_cast<double>(graph.expressions.constant_value(size).value_or(64));
    return elements;
}

bool is_channels_last(const Graph& graph, const Tensor& tensor) {
    return tensor.strides.size() >= 4 && graph.expressions.constant_value(tensor.strides[1]) == 1;
}

/// Whether an operator computes statistics and then reads all elements again: norms, softmax, batch norms in training.
bool normalizes(const Op& op) {
    using enum OpKind;
    return op.is(softmax, log_softmax, layer_norm, rms_norm, group_norm, instance_norm) ||
           (op.is(batch_norm) && op.integer("training", 0) != 0);
}

/// Returns for each dimension of the first operand whether a reduction or the statistics go over it.
std::vector<bool> reduced_dimensions(const Op& op, std::int64_t rank) {
    std::vector<bool> reduced(static_cast<std::size_t>(rank), op.kind == OpKind::batch_norm);
    if (op.kind == OpKind::reduce) {
        for (const std::int64_t axis : op.integers("axes")) reduced[static_cast<std::size_t>(axis)] = true;
    } else if (op.kind == OpKind::batch_norm) {
        if (rank > 1) reduced[1] = false;
    } else if (op.is(OpKind::cumulative, OpKind::softmax, OpKind::log_softmax)) {  // along an axis
        const std::int64_t axis = op.integer("axis", -1);
        if (axis >= -rank && axis < rank) reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
    } else {
        const bool by_axis = op.is(OpKind::layer_norm, OpKind::rms_norm);
        const std::int64_t first = by_axis ? op.integer("axis", -1) : op.kind == OpKind::group_norm ? 1 : 2;
        const auto from = std::clamp<std::int64_t>(first < 0 ? first + rank : first, 0, rank);
        std::fill(reduced.begin() + from, reduced.end(), true);
    }
    return reduced;
}

std::optional<Reduction> reduction_of(const Graph& graph, const Op& op) {
    const bool reduces = op.kind == OpKind::global_pool || (op.kind == OpKind::reduce && !op.integers("axes").empty());
    if (!reduces && !normalizes(op) && op.kind != OpKind::cumulative) return std::nullopt;
    const Tensor& x = graph.tensors[op.inputs[0]];
    const std::vector<bool> reduced = reduced_dimensions(op, static_cast<std::int64_t>(x.shape.size()));
    Reduction result;
    const auto visit = [&](std::size_t axis) {
        const double size = elements_of(graph, {x.shape[axis]});
        (reduced[axis] ? result.length : result.results) *= size;
        if (!reduced[axis]) result.shape.push_back(x.shape[axis]);
        if (!reduced[axis] && size > 1 && result.length > 1) result.inner = false;
    };
    const bool channels_last = is_channels_last(graph, x);
    for (std::size_t axis = 0; axis < x.shape.size(); ++axis)
        if (!channels_last || axis != 1) visit(axis);
    if (channels_last) visit(1);
    if (op.kind == OpKind::group_norm) {
        const auto groups = static_cast<double>(std::max<std::int64_t>(op.integer("groups", 1), 1));
        result.results *= groups, result.length /= groups;
        result.inner = !channels_last;
    }
    return result;
}

/// Returns true if separate kernels compute the statistics, or a part of a reduction.
bool has_own_statistics(const Graph& graph, const Op& op) {
    if (op.text("function").starts_with("arg") || op.kind == OpKind::cumulative) return false;
    const auto reduction = reduction_of(graph, op);
    if (!reduction) return false;
    // The groups of channels are indexed apart from the elements: triton_red_fused_native_group_norm, then triton_poi.
    const bool apart = op.kind == OpKind::group_norm || !reduction->inner;
    return reduction->is_split() || (normalizes(op) && apart);
}

void append_statistics(Spelling out) {
    const Op& op = out.replaced;
    const Reduction reduction = *reduction_of(out.graph, op);
    const bool split = reduction.is_split();
    const bool twice = op.kind == OpKind::softmax || op.kind == OpKind::log_softmax;  // the maximum, then the sum
    // Rows of an NHWC tensor along its width are contiguous in neither their elements nor their order, NCHW.
    const Tensor& x = out.graph.tensors[op.inputs[0]];
    const bool along_width = twice && is_channels_last(out.graph, x) && op.integer("axis", -1) != 1;
    const auto reduce = [&](std::vector<TensorId> inputs, TensorId to, std::int64_t what) {
        const char* function = normalizes(op) && !twice ? "var" : "sum";
        std::vector<Attribute> attributes{{"function", std::string(function)}, {std::string(statistics), what}};
        if (along_width) attributes.push_back({std::string(strided_tensor), static_cast<std::int64_t>(op.inputs[0])});
        return out.apply(OpKind::reduce, std::move(inputs), to, std::move(attributes));
    };
    std::vector<TensorId> inputs{op.inputs[0]};
    for (int i = 0; i < (twice ? 2 : 1); ++i) {
        std::vector<TensorId> from = inputs;
        if (split) from = {reduce(inputs, out.tensor(DType::f32, reduction.shape), partial)};
        const TensorId to = normalizes(op) ? out.tensor(DType::f32, reduction.shape) : op.outputs[0];
        inputs.push_back(reduce(from, to, split ? joined : whole));
    }
    if (!normalizes(op)) return;
    inputs.insert(inputs.end(), op.inputs.begin() + 1, op.inputs.end());
    out.apply(OpKind::pointwise, std::move(inputs), op.outputs[0], {{"function", std::string("sub")}});
}

/// Windows read each input value several times, so the input is stored first.
bool reads_stored_values(const Op& op) {
    return op.kind == OpKind::pool || op.kind == OpKind::resize;
}

/// Readers select among few parts of a concatenation; with more parts, or where several read more than four, it is
/// materialised first. Source: torch/_inductor/lowering.py, cat (MAX_COMPLEX_POINTWISE_CAT), ir.py
/// (should_realize_on_reuse, realize_reads_threshold).
constexpr std::size_t most_selected_parts = 8;
bool is_stored_concatenation(const Op& op, std::size_t readers) {
    return op.kind == OpKind::concat && op.inputs.size() > (readers > 1 ? 4 : most_selected_parts);
}

/// Groups of operators in one kernel, each represented by its last operator.
class Grouping {
  public:
    explicit Grouping(Graph& graph)
        : graph_(graph),
          leader_(graph.ops.size()),
          members_(graph.ops.size()),
          readers_(readers_of(graph)),
          keeps_bias_(graph.ops.size()) {
        assign_producers(graph);
        for (OpId id = 0; id < graph.ops.size(); ++id) {
            leader_[id] = id;
            members_[id] = {id};
        }
        is_output_.assign(graph.tensors.size(), false);
        for (const TensorId output : graph.outputs) is_output_[output] = true;
        for (OpId id = 0; id < graph.ops.size(); ++id) {
            if (may_be_generated(graph.ops[id])) join_producers(id);
            if (graph.ops[id].kind != OpKind::linear) continue;
            each_reader(graph.ops[id].outputs[0], [&](OpId reader) {
                const Op& use = graph.ops[reader];
                if (!use.is(OpKind::pointwise, OpKind::cast, OpKind::batch_norm) || normalizes(use))
                    keeps_bias_[id] = true;
            });
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
    /// Returns the operator that computes a tensor's base; no_op for inputs and weights.
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

    double domain_of(const Op& op) const {
        const std::int64_t what = op.integer(statistics, joined);
        if (what != joined) return elements_of(graph_, graph_.tensors[op.inputs[0]].shape);
        const auto reduction = reduction_of(graph_, op);
        return reduction ? reduction->elements() : elements_of(graph_, graph_.tensors[op.outputs[0]].shape);
    }

    /// Returns true if one kernel can iterate over the reductions of a group and the output of `reader`: over their
    /// results, or again over their elements.
    bool iterates_alike(OpId producer, OpId reader) const {
        const double domain = domain_of(graph_.ops[reader]);
        return std::ranges::all_of(members_[leader_[producer]], [&](OpId member) {
            const Op& op = graph_.ops[member];
            if (const std::int64_t what = op.integer(statistics, -1); what >= 0)
                return what != partial && domain <= elements_of(graph_, graph_.tensors[op.outputs[0]].shape);
            const auto reduction = reduction_of(graph_, op);
            if (!reduction || domain <= reduction->results) return true;
            return reduction->inner && domain == reduction->elements();
        });
    }

    /// Returns true if the group reads its large operands twice: in a loop over a row, if the rows in flight exceed the
    /// cache. Rows of up to 8,192 elements are assumed to be cached.
    bool reads_twice(OpId leader) const {
        const double written = elements_of(graph_, graph_.tensors[graph_.ops[leader].outputs[0]].shape);
        return std::ranges::any_of(members_[leader], [&](OpId member) {
            const auto reduction = reduction_of(graph_, graph_.ops[member]);
            return reduction && reduction->inner && reduction->length > 8192 && written == reduction->elements();
        });
    }

    /// Returns true if the group of `producer` can be delayed until `reader` runs.
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

    /// Returns how many values the group's reductions combine; partial variances come with a mean and a weight.
    std::int64_t combined_values(OpId leader) const {
        std::int64_t values = 0;
        for (const OpId id : members_[leader]) {
            const Op& op = graph_.ops[id];
            const std::int64_t what = op.integer(statistics, -1);
            const bool variance = what == partial && op.text("function") == "var";
            values += variance ? 3 : what >= 0 || reduction_of(graph_, op) ? 1 : 0;
        }
        return values;
    }

    /// Returns the concatenation of channels, if any, that the group reads against the order of its loops: a channel of
    /// an NHWC part depends on where the part begins, so it does not suggest a tiling. The loops are those of a
    /// contiguous result, unless a convolution wants it in NHWC, or of statistics.
    /// Source: torch/_inductor/codegen/simd.py, candidate_tilings (2.5); lowering.py, pointwise_cat.
    TensorId read_against_order(OpId leader) const {
        const std::vector<OpId>& members = members_[leader];
        const bool reduces =
            std::ranges::any_of(members, [&](OpId id) { return graph_.ops[id].integer(statistics, joined) != joined; });
        for (const OpId id : members) {
            const Op& op = graph_.ops[id];
            if (const std::int64_t tensor = op.integer(strided_tensor, -1); tensor >= 0)
                return static_cast<TensorId>(tensor);
            if (op.kind != OpKind::concat || op.integer("axis", 0) != 1 ||
                !is_channels_last(graph_, graph_.tensors[op.inputs.back()]))
                continue;
            bool wanted = false;
            each_reader(op.outputs[0], [&](OpId reader) { wanted |= graph_.ops[reader].kind == OpKind::conv; });
            if (reduces || (id == leader && !wanted)) return op.outputs[0];
        }
        return no_tensor;
    }

    /// Whether a parameter is an ordinary operand (layer scale, position embedding), which affects type promotion.
    bool reads_parameter(const Op& op) const {
        return (op.kind == OpKind::pointwise || op.kind == OpKind::concat) &&
               std::ranges::any_of(op.inputs, [&](TensorId input) {
                   if (input == no_tensor) return false;
                   const Tensor& tensor = graph_.tensors[viewed(graph_, input)];
                   return tensor.role == TensorRole::weight && !tensor.shape.empty();
               });
    }

    /// Returns true if the operator is an activation, of several operators, whose operand is stored in f32 when two
    /// kernels need it: a norm reads five. Source: torch/_inductor/ir.py, should_realize_on_reuse
    /// (realize_reads_threshold is 4); torch/_decomp/decompositions.py (pw_cast_for_opmath).
    bool stores_operand(OpId id) const {
        const Op& op = graph_.ops[id];
        if (!computes(op, "silu", "gelu", "gelu_tanh", "hardswish", "mish")) return false;
        const OpId producer = source_of(op.inputs[0]);
        return producer != no_op && graph_.ops[producer].is(OpKind::batch_norm, OpKind::layer_norm, OpKind::group_norm);
    }

    void join_producers(OpId reader) {
        if (reads_stored_values(graph_.ops[reader])) return;
        for (const TensorId input : graph_.ops[reader].inputs) {
            const OpId producer = source_of(input);
            // Padding has a different iteration space from a kernel that stores its operand.
            if (producer != no_op && graph_.ops[reader].kind == OpKind::pad && stores_operand(producer)) continue;
            if (producer != no_op && is_stored_concatenation(graph_.ops[producer], readers_[input].size())) continue;
            if (producer == no_op || !may_be_generated(graph_.ops[producer]) || leader_[producer] == leader_[reader] ||
                !can_wait(producer, reader) || !iterates_alike(producer, reader))
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
                 .module = last.module,
                 .attributes = {{"function", std::string(fused_function)}, {std::string(generated), std::int64_t{1}}}};
        std::vector<std::int64_t> full, looked_up;
        bool by_parameter = false;
        for (const OpId member : members_[leader]) {
            const Op& op = graph_.ops[member];
            append_lookups(graph_, op, looked_up);
            by_parameter = by_parameter || reads_parameter(op);
            fused.source += (fused.source.empty() ? "triton: " : "+") + op.source;
            for (const TensorId input : present(op.inputs)) {
                const OpId source = source_of(input);
                if (source != no_op && leader_[source] == leader) continue;
                if (std::ranges::count(fused.inputs, input) == 0) fused.inputs.push_back(input);
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
        if (reads_twice(leader)) {
            const double domain = domain_of(last);
            std::vector<TensorId> again = fused.inputs;
            std::erase_if(again, [&](TensorId id) { return elements_of(graph_, graph_.tensors[id].shape) < domain; });
            fused.inputs.insert(fused.inputs.end(), again.begin(), again.end());
        }
        if (by_parameter) fused.attributes.push_back({std::string(parameter_operand), std::int64_t{1}});
        if (const std::int64_t combined = combined_values(leader); combined > 0)
            fused.attributes.push_back({std::string(reductions), combined});
        if (const TensorId tensor = read_against_order(leader); tensor != no_tensor)
            fused.attributes.push_back({std::string(strided_tensor), static_cast<std::int64_t>(tensor)});
        if (!looked_up.empty()) fused.attributes.push_back({std::string(lookups_attribute), std::move(looked_up)});
        if (!full.empty()) fused.attributes.push_back({std::string(full_outputs), std::move(full)});
        return fused;
    }

    /// If only generated kernels read a product, they add its bias; that of a layer if all of them are pointwise.
    /// Source: torch/_inductor/kernel/conv.py ("peel off the bias"), fx_passes/post_grad.py (unfuse_bias_add).
    void leave_bias(OpId id) {
        if (id == no_op) return;
        Op& op = graph_.ops[id];
        const bool has_bias = op.kind == OpKind::conv || op.kind == OpKind::conv_transpose || op.kind == OpKind::linear;
        if (!has_bias || op.inputs.size() < 3 || !op.text(epilogue).empty()) return;
        if (is_read_by_generated(op.outputs[0]) && !keeps_bias_[id]) op.inputs.resize(2);
    }

    Graph& graph_;
    std::vector<OpId> leader_;
    std::vector<std::vector<OpId>> members_;  ///< members of each leader, in order
    std::vector<std::vector<OpId>> readers_;
    std::vector<bool> is_output_;
    std::vector<bool> keeps_bias_;  ///< layers that others than pointwise operators read
};

}  // namespace

/// Leaves 3-D maximum pooling to ATen, as Inductor does before PyTorch 2.8 (torch/_inductor/lowering.py).
void keep_maxima_of_volumes(Graph& graph) {
    for (Op& op : graph.ops)
        if (op.kind == OpKind::pool && op.text("function") == "max" && op.integers("kernel").size() == 3)
            op.attributes.push_back({std::string(library_kernel), std::int64_t{1}});
}

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
        rows = append(graph, std::move(read));
    }
    pairs.push_back(static_cast<std::int64_t>(op.inputs[0]));
    pairs.push_back(static_cast<std::int64_t>(rows));
}

/// Recognises attention with one batch dimension (two products with only a softmax between them), for which a library
/// has a 4-D kernel. Source: torch/_inductor/fx_passes/fuse_attention.py (_sfdp_pattern_13).
void recognise_batched_attention(Graph& graph) {
    assign_producers(graph);
    const std::vector<int> readers = count_readers(graph);
    const auto products = [](const Op& op) { return op.kind == OpKind::matmul && op.inputs.size() == 2; };
    const auto softmaxes = [](const Op& op) { return op.kind == OpKind::softmax; };
    std::vector<std::vector<TensorId>> scores(graph.ops.size());  // operands of the first product, by the second
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        const Op& values = graph.ops[id];
        if (!products(values) || graph.tensors[values.outputs[0]].shape.size() != 3) continue;
        const OpId softmax = sole_producer(graph, readers, values.inputs[0], softmaxes);
        if (softmax == no_op) continue;
        const OpId product = sole_producer(graph, readers, graph.ops[softmax].inputs[0], products);
        if (product != no_op) scores[id] = graph.ops[product].inputs;
    }
    const auto factors = [&](const Op& op) { return scores[static_cast<std::size_t>(&op - graph.ops.data())]; };
    const auto attends = [&](const Graph&, const Op& op) { return !factors(op).empty(); };
    write_out(graph, attends, [&](Spelling out) {
        const auto with_one_batch = [&](TensorId operand, bool turned) {
            std::vector<Expression> shape = out.graph.tensors[operand].shape;
            if (turned) std::swap(shape[1], shape[2]);
            shape.insert(shape.begin(), out.graph.expressions.constant(1));
            const DType type = out.graph.tensors[operand].dtype;
            return out.apply(OpKind::identity, {operand}, out.tensor(type, std::move(shape)));
        };
        const std::vector<TensorId> query_and_key = factors(out.replaced);
        const TensorId query = with_one_batch(query_and_key[0], false);
        const TensorId key = with_one_batch(query_and_key[1], true);
        const TensorId value = with_one_batch(out.replaced.inputs[1], false);
        out.apply(OpKind::attention, {query, key, value}, out.replaced.outputs[0], {{"causal", std::int64_t{0}}});
    });
}

/// Removes operators with unread results, except in-place ones, as AOTAutograd does.
void erase_unread(Graph& graph) {
    if (graph.outputs.empty()) return;
    ftax::erase_unread(graph, [](const Op& op) { return !op.source.ends_with('_') && !op.outputs.empty(); });
}

bool updates_buffers(const Graph& graph) {
    return std::ranges::any_of(graph.ops, [](const Op& op) { return op.integer("training", 0) != 0; });
}

/// Adds the copies into the three buffers of a training batch norm that a functional graph needs.
/// Source: torch/_functorch/_aot_autograd (functionalization: copy_ of mutated inputs).
void write_out_updates(Graph& graph) {
    const auto updates = [](const Graph&, const Op& op) { return op.integer("training", 0) != 0; };
    write_out(graph, updates, [](Spelling out) {
        const Op& norm = out.replaced;
        out.apply(OpKind::batch_norm, norm.inputs, norm.outputs[0], norm.attributes);
        const std::vector<Expression> shape = reduction_of(out.graph, norm)->shape;
        for (int buffer = 0; buffer < 3; ++buffer) out.apply(OpKind::fill, {}, out.tensor(DType::f32, shape));
    });
}

/// Each part of a concatenation of many is copied by a kernel of its own, which serves two concatenations at once where
/// several read the part, as those of a dense block do. The concatenation's kernel stands for the traffic of all.
/// Source: torch/_inductor/ir.py, ConcatKernel.create; code that Inductor 2.5 writes for DenseNet-201.
void write_out_parts(Graph& graph) {
    const auto has_many_parts = [](const Graph&, const Op& op) {
        return op.kind == OpKind::concat && op.inputs.size() > most_selected_parts;
    };
    write_out(graph, has_many_parts, [](Spelling out) {
        const Op& op = out.replaced;
        out.apply(OpKind::concat, op.inputs, op.outputs[0], op.attributes);
        for (std::size_t part = 2; part < op.inputs.size(); part += 2)
            out.apply(OpKind::fill, {}, out.tensor(DType::f32, {}));
    });
}

/// Fuses pointwise operators, norms, softmax and reductions into their readers, through views, unless another kernel
/// must run in between. Leftovers of library calls (a convolution's bias) are fused too. A strided reduction, or one
/// with too few results to fill a card, runs before operators that read its operand again.
/// Source: torch/_inductor/scheduler.py (can_fuse_vertical), lowering.py (pointwise operators are inlined),
/// codegen/simd.py (can_fuse), choices.py (reduction_split_factor).
void fuse_into_readers(Graph& graph) {
    erase_unread(graph);
    recognise_batched_attention(graph);
    erase_unread(graph);
    write_out_parts(graph);
    write_out(graph, has_own_statistics, append_statistics);
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
    // A graph with few convolutions keeps its layout.
    constexpr std::size_t operators_per_convolution = 300;
    return convolutions > 0 && graph.ops.size() < operators_per_convolution * convolutions && weighed <= work;
}

/// Copies NCHW inputs to the layout of the convolutions, and results of convolutions back.
/// Source: torch/_inductor/graph.py, which keeps the strides of inputs and outputs (keep_output_stride).
void convert_layouts_at_edges(Graph& graph) {
    std::vector<Op> copies;
    const auto convert = [&](TensorId from, std::vector<Expression> strides, const std::string& name) {
        Tensor converted = graph.tensors[from];
        converted.name += "/" + name;
        converted.role = TensorRole::activation;
        converted.strides = std::move(strides);
        const TensorId to = append(graph, std::move(converted));
        copies.push_back({.kind = OpKind::copy, .name = graph.tensors[to].name, .inputs = {from}, .outputs = {to}});
        return to;
    };
    for (const TensorId input : graph.inputs) {
        if (graph.tensors[input].strides.empty()) continue;
        const TensorId converted = convert(input, std::exchange(graph.tensors[input].strides, {}), "channels_last");
        for (Op& op : graph.ops) std::ranges::replace(op.inputs, input, converted);
    }
    // Filters are converted in every pass, unless both layouts coincide.
    const auto is_one = [&](const Tensor& tensor, std::size_t i) {
        return graph.expressions.constant_value(tensor.shape[i]) == 1;
    };
    for (Op& op : graph.ops) {
        if (op.kind != OpKind::conv || graph.tensors[op.inputs[1]].strides.empty()) continue;
        const TensorId filter = op.inputs[1];
        const Tensor& values = graph.tensors[filter];
        if (is_one(values, 1) || (is_one(values, 2) && is_one(values, 3))) continue;
        op.inputs[1] = convert(filter, std::exchange(graph.tensors[filter].strides, {}), "channels_last");
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
