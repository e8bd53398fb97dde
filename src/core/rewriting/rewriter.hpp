#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Looks around in a graph whose operators are in execution order, and replaces groups of them. Removed operators stay
/// as holes until finish().
class Rewriter {
  public:
    explicit Rewriter(Graph& graph);

    [[nodiscard]] Graph& graph() noexcept { return graph_; }
    [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
    [[nodiscard]] std::size_t op_count() const noexcept { return graph_.ops.size(); }
    [[nodiscard]] bool removed(OpId op) const { return removed_[op]; }
    [[nodiscard]] const Op& op(OpId id) const { return graph_.ops[id]; }
    [[nodiscard]] const Tensor& tensor(TensorId id) const { return graph_.tensors[id]; }

    /// Operator that produces the tensor; no_op for inputs and constants.
    [[nodiscard]] OpId producer(TensorId tensor) const;
    /// The only operator that reads the tensor, once or several times; no_op when there are others or it is an output.
    [[nodiscard]] OpId sole_reader(TensorId tensor) const;
    [[nodiscard]] const std::vector<OpId>& readers(TensorId tensor) const { return readers_[tensor]; }

    /// True for an elementwise operator with that function.
    [[nodiscard]] bool is(OpId op, std::string_view function) const;
    [[nodiscard]] bool is(OpId op, OpKind kind) const {
        return op != no_op && !removed_[op] && graph_.ops[op].kind == kind;
    }
    /// The scalar constant that a two-operand elementwise operator combines its tensor with.
    [[nodiscard]] std::optional<double> scalar(OpId op) const;
    /// Its other operand, the tensor; no_tensor when there is not exactly one.
    [[nodiscard]] TensorId variable(OpId op) const;
    /// The operand of a two-operand operator that is not `known`; no_tensor when there is none.
    [[nodiscard]] TensorId other(OpId op, TensorId known) const;
    [[nodiscard]] bool is_parameter(TensorId tensor) const;

    /// Makes `last` the operator that stands for the whole `group` (which includes it): kind, inputs and attributes are
    /// replaced, outputs and place kept, the others removed.
    void replace(OpId last, const std::vector<OpId>& group, OpKind kind, std::vector<TensorId> inputs,
                 std::vector<Attribute> attributes);
    /// Inputs or attributes of an operator changed from outside: keeps the readers right.
    void set_inputs(OpId op, std::vector<TensorId> inputs);

    /// Drops removed operators, operators whose results nobody reads, and tensors nobody mentions.
    void finish();

  private:
    Graph& graph_;
    std::vector<bool> removed_;
    std::vector<std::vector<OpId>> readers_;
    std::vector<bool> is_output_;
};

}  // namespace ftax
