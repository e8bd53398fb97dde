#include <algorithm>
#include <set>

#include "ftax/headroom.hpp"
#include "graphs/base/checked_math.hpp"
#include "graphs/ir/operands.hpp"

namespace ftax {
namespace {

using Marks = std::vector<bool>;  ///< per dimension of a tensor: true if it grows

/// Marks the dimensions that grow with the width, operator by operator in execution order.
class WidthMarks {
  public:
    WidthMarks(const Graph& graph, const BoundShapes& bound) : graph_(graph), bound_(bound), heads_(heads(graph)) {
        for (const Tensor& tensor : graph.tensors) marks_.emplace_back(tensor.shape.size(), false);
        widened_groups_.resize(graph.ops.size(), false);
        for (OpId id = 0; id < graph.ops.size(); ++id) mark(id);
    }

    [[nodiscard]] const Marks& operator[](TensorId tensor) const { return marks_[tensor]; }
    /// A depthwise convolution: its groups are its channels.
    [[nodiscard]] bool widens_groups(OpId op) const { return widened_groups_[op]; }

  private:
    static bool is_weight(const Graph& graph, TensorId id) {
        return id != no_tensor && graph.tensors[id].role == TensorRole::weight && graph.tensors[id].producer == no_op;
    }
    static bool has_weight(const Graph& graph, const Op& op) {
        return op.is(OpKind::conv, OpKind::conv_transpose, OpKind::linear, OpKind::matmul) && op.inputs.size() > 1 &&
               is_weight(graph, op.inputs[1]);
    }

    /// Contractions whose results become graph outputs without involving another activation.
    static std::set<OpId> heads(const Graph& graph) {
        std::set<OpId> found;
        for (TensorId tensor : graph.outputs) {
            for (OpId id = graph.tensors[tensor].producer; id != no_op; id = graph.tensors[tensor].producer) {
                const Op& op = graph.ops[id];
                if (has_weight(graph, op)) {
                    found.insert(id);
                    break;
                }
                const auto is_activation = [&](TensorId t) {
                    return t != no_tensor && graph.tensors[t].producer != no_op;
                };
                if (std::count_if(op.inputs.begin(), op.inputs.end(), is_activation) != 1) break;
                tensor = *std::find_if(op.inputs.begin(), op.inputs.end(), is_activation);
            }
        }
        return found;
    }

    std::int64_t value(TensorId tensor, std::size_t axis) const { return bound_[graph_.tensors[tensor].shape[axis]]; }
    std::size_t rank(TensorId tensor) const { return marks_[tensor].size(); }
    bool last(TensorId tensor) const { return rank(tensor) > 0 && marks_[tensor].back(); }
    bool from_end(TensorId tensor, std::size_t distance) const {
        return rank(tensor) >= distance && marks_[tensor][rank(tensor) - distance];
    }
    void set_mark(TensorId tensor, std::size_t axis, bool grows) {
        if (tensor != no_tensor && axis < rank(tensor)) marks_[tensor][axis] = grows;
    }
    void set_last(TensorId tensor, bool grows) {
        if (tensor != no_tensor && rank(tensor) > 0) marks_[tensor].back() = grows;
    }

    void mark(OpId id) {
        const Op& op = graph_.ops[id];
        if (op.inputs.empty() || op.outputs.empty() || op.inputs[0] == no_tensor) return;
        const TensorId y = op.outputs[0];
        switch (op.kind) {
            case OpKind::conv:
            case OpKind::conv_transpose:
                if (has_weight(graph_, op)) return mark_conv(id, op);
                break;
            case OpKind::linear:
                if (has_weight(graph_, op)) return mark_linear(id, op, op.integer("transposed_weight", 1) != 0);
                break;
            case OpKind::matmul:
                if (has_weight(graph_, op)) return mark_linear(id, op, op.integer("transpose_b", 0) != 0);
                if (rank(y) < 2) break;
                mark_broadcast(op, y);
                set_mark(y, rank(y) - 2, from_end(op.inputs[0], op.integer("transpose_a", 0) != 0 ? 1 : 2));
                return set_last(y, from_end(op.inputs[1], op.integer("transpose_b", 0) != 0 ? 2 : 1));
            case OpKind::embedding:
                set_last(op.inputs[0], true);
                return set_last(y, true);
            case OpKind::attention:
                mark_broadcast(op, y);
                return set_last(y, op.inputs.size() > 2 && op.inputs[2] != no_tensor && last(op.inputs[2]));
            case OpKind::transpose: {
                const auto perm = op.integers("perm");
                const Marks& marks = marks_[op.inputs[0]];
                for (std::size_t i = 0; i < perm.size() && perm.size() == marks.size(); ++i) {
                    const auto axis = static_cast<std::size_t>(perm[i]);
                    set_mark(y, i, axis < marks.size() && marks[axis]);
                }
                return;
            }
            case OpKind::reshape:
                return mark_reshape(op.inputs[0], y);
            case OpKind::recurrent:
                return;
            default:
                break;
        }
        for (const TensorId output : op.outputs) mark_broadcast(op, output);
        mark_parameters(op);
    }

    void mark_conv(OpId id, const Op& op) {
        const bool in = rank(op.inputs[0]) > 1 && marks_[op.inputs[0]][1];
        const bool transposed = op.kind == OpKind::conv_transpose;
        const bool depthwise = op.integer("groups", 1) > 1 && rank(op.inputs[1]) > 1 && value(op.inputs[1], 1) == 1;
        const bool out = depthwise ? in : !heads_.contains(id);
        widened_groups_[id] = depthwise && in;
        set_mark(op.inputs[1], 0, transposed ? in : out);
        if (!depthwise) set_mark(op.inputs[1], 1, transposed ? out : in);
        if (op.inputs.size() > 2) set_mark(op.inputs[2], 0, out);
        set_mark(op.outputs[0], 1, out);
    }

    void mark_linear(OpId id, const Op& op, bool is_transposed) {
        const TensorId w = op.inputs[1];
        const TensorId y = op.outputs[0];
        if (rank(w) < 2) return;
        const bool grows = !heads_.contains(id);
        mark_broadcast(op, y);
        set_mark(w, rank(w) - (is_transposed ? 1 : 2), last(op.inputs[0]));
        set_mark(w, rank(w) - (is_transposed ? 2 : 1), grows);
        if (op.inputs.size() > 2) set_last(op.inputs[2], grows);
        set_last(y, grows);
    }

    /// Split dimensions grow in their last factor: the width of a head, the channels of a group.
    void mark_reshape(TensorId x, TensorId y) {
        std::size_t i = 0, j = 0;
        while (i < rank(x) && j < rank(y)) {
            bool grows = marks_[x][i];
            std::int64_t before = value(x, i++);
            std::int64_t after = value(y, j++);
            while (before != after) {
                if (before < after && i < rank(x)) {
                    grows = grows || marks_[x][i];
                    before *= value(x, i++);
                } else if (after < before && j < rank(y)) {
                    after *= value(y, j++);
                } else {
                    return;
                }
            }
            if (grows) set_mark(y, j - 1, true);
        }
    }

    /// Result dimensions follow the corresponding input dimensions, counted from the end as in broadcasting; if an
    /// operator drops dimensions, the remaining ones in order.
    void mark_broadcast(const Op& op, TensorId y) {
        for (const TensorId x : op.inputs) {
            if (x == no_tensor || graph_.tensors[x].role == TensorRole::weight) continue;
            if (rank(x) <= rank(y)) {
                for (std::size_t i = 0; i < rank(x); ++i) {
                    const std::size_t axis = rank(y) - rank(x) + i;
                    if (marks_[x][i] && value(x, i) > 1 && value(y, axis) > 1) marks_[y][axis] = true;
                }
            } else {
                std::size_t next = 0;
                for (std::size_t axis = 0; axis < rank(y); ++axis) {
                    std::size_t i = next;
                    while (i < rank(x) && value(x, i) != value(y, axis)) ++i;
                    if (i == rank(x)) continue;
                    if (marks_[x][i]) marks_[y][axis] = true;
                    next = i + 1;
                }
            }
        }
    }

    /// Scales, shifts and statistics have the width of their operand.
    void mark_parameters(const Op& op) {
        const TensorId y = op.outputs[0];
        for (const TensorId w : op.inputs) {
            if (!is_weight(graph_, w) || rank(w) == 0 || rank(w) > rank(y)) continue;
            for (std::size_t axis = 0; axis < rank(y); ++axis) {
                if (!marks_[y][axis]) continue;
                const std::size_t aligned = rank(w) == 1 ? 0 : axis + rank(w) - rank(y);
                if (aligned < rank(w) && value(w, aligned) == value(y, axis)) marks_[w][aligned] = true;
            }
        }
    }

    const Graph& graph_;
    const BoundShapes& bound_;
    std::set<OpId> heads_;
    std::vector<Marks> marks_;
    std::vector<bool> widened_groups_;
};

}  // namespace

Graph widened(const Graph& graph, const ShapeBindings& bindings, std::int64_t numerator, std::int64_t denominator) {
    check_operands(graph);
    const BoundShapes bound = ftax::bind(graph, bindings);
    const WidthMarks marks(graph, bound);
    Graph result = graph;
    ExpressionPool& pool = result.expressions;
    const auto grown = [&](Expression e) {
        return pool.floor_divide(pool.multiply(e, pool.constant(numerator)), pool.constant(denominator));
    };
    for (TensorId id = 0; id < graph.tensors.size(); ++id) {
        const Tensor& before = graph.tensors[id];
        Tensor& after = result.tensors[id];
        for (std::size_t axis = 0; axis < before.shape.size(); ++axis) {
            if (!marks[id][axis]) continue;
            after.shape[axis] = grown(after.shape[axis]);
            // Strides larger than that of this axis grow.
            for (std::size_t i = 0; i < before.strides.size(); ++i)
                if (bound[before.strides[i]] > bound[before.strides[axis]]) after.strides[i] = grown(after.strides[i]);
        }
    }
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        if (!marks.widens_groups(id)) continue;
        for (Attribute& attribute : result.ops[id].attributes) {
            auto* const groups = std::get_if<std::int64_t>(&attribute.value);
            if (attribute.name == "groups" && groups) *groups = checked_multiply(*groups, numerator) / denominator;
        }
    }
    return result;
}

}  // namespace ftax
