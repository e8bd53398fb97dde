#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Matches and replaces groups of operators in execution order. Removed operators stay as holes until finish().
class Rewriter {
  public:
    explicit Rewriter(Graph& graph);

    [[nodiscard]] Graph& graph() noexcept { return graph_; }
    [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
    [[nodiscard]] std::size_t op_count() const noexcept { return graph_.ops.size(); }
    [[nodiscard]] const Op& op(OpId id) const { return graph_.ops[id]; }
    [[nodiscard]] const Tensor& tensor(TensorId id) const { return graph_.tensors[id]; }

    /// Returns the producer of the tensor; no_op for inputs and constants.
    [[nodiscard]] OpId producer(TensorId tensor) const;
    /// Returns the only operator that reads the tensor, once or several times; no_op if others do or it is an output.
    [[nodiscard]] OpId sole_reader(TensorId tensor) const;
    [[nodiscard]] const std::vector<OpId>& readers(TensorId tensor) const { return readers_[tensor]; }

    [[nodiscard]] bool is(OpId op, std::string_view function) const;
    [[nodiscard]] bool is(OpId op, OpKind kind) const {
        return op != no_op && !removed_[op] && graph_.ops[op].kind == kind;
    }
    /// Returns the scalar constant operand of a binary elementwise operator.
    [[nodiscard]] std::optional<double> scalar(OpId op) const;
    /// Returns its tensor operand; no_tensor unless there is exactly one.
    [[nodiscard]] TensorId variable(OpId op) const;
    /// Returns the operand of a binary operator that is not `known`; no_tensor if there is none.
    [[nodiscard]] TensorId other(OpId op, TensorId known) const;
    [[nodiscard]] bool is_parameter(TensorId tensor) const;

    /// Replaces the whole `group` (which includes `last`) by `last`: kind, inputs and attributes are
    /// replaced, outputs and place kept, the others removed.
    void replace(OpId last, const std::vector<OpId>& group, OpKind kind, std::vector<TensorId> inputs,
                 std::vector<Attribute> attributes);
    /// Updates the readers after inputs or attributes of an operator have been changed externally.
    void set_inputs(OpId op, std::vector<TensorId> inputs);

    /// Erases removed operators, operators with unread results, and unreferenced tensors.
    void finish();

  private:
    Graph& graph_;
    std::vector<bool> removed_;
    std::vector<std::vector<OpId>> readers_;
    std::vector<bool> is_output_;
};

}  // namespace ftax
