#include <fmt/format.h>

#include "ftax/error.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/ir/operands.hpp"
#include "graphs/ir/shape_rules.hpp"

namespace ftax {
namespace {

/// Functions that broadcast all their operands; others have operands of their own kind (a table of angles, a slope).
constexpr std::string_view broadcasting = "add sub mul div pow min max mod where";

class SizeChecks {
  public:
    explicit SizeChecks(Graph& graph) : graph_(graph), pool_(graph.expressions) {}

    void run() {
        for (const Op& op : graph_.ops) {
            op_ = &op;
            if (op.inputs.empty() || op.outputs.empty() || !known(op.outputs[0])) continue;
            const TensorId x = op.inputs[0], y = op.outputs[0];
            if (op.kind == OpKind::reshape) same_elements(x, y);
            if (op.kind == OpKind::expand && op.inputs.size() == 1) broadcasts(x, y, 0);
            if (op.kind == OpKind::pointwise && has_word(broadcasting, op.text("function")))
                for (const TensorId input : op.inputs) broadcasts(input, y, 0);
            if (op.kind == OpKind::matmul) product(op);
            if (op.kind == OpKind::linear && known(x) && known(op.inputs[1]) && rank(x) > 0 && rank(op.inputs[1]) == 2)
                equal(shape(x).back(), shape(op.inputs[1])[op.integer("transposed_weight", 1) != 0 ? 1 : 0], false);
            if (op.kind == OpKind::concat) joined(op);
        }
    }

  private:
    [[nodiscard]] bool known(TensorId id) const { return id != no_tensor && graph_.tensors[id].known_shape; }
    [[nodiscard]] const std::vector<Expression>& shape(TensorId id) const { return graph_.tensors[id].shape; }
    [[nodiscard]] std::size_t rank(TensorId id) const { return shape(id).size(); }

    /// What two numbers have to do with each other the importer has looked at.
    void equal(Expression is, Expression must_be, bool or_one) {
        if (is == must_be || (or_one && pool_.constant_value(is) == 1)) return;
        if (pool_.constant_value(is) && pool_.constant_value(must_be)) return;
        graph_.size_checks.push_back({fmt::format("{} ({})", op_->name, op_->source), is, must_be, or_one});
    }

    void same_elements(TensorId input, TensorId output) {
        if (!known(input) || bits_of(graph_.tensors[input].dtype) != bits_of(graph_.tensors[output].dtype)) return;
        Dims before = shape(input), after = shape(output);
        cancel(before, after);
        const DimensionMath math(pool_);
        try {
            equal(math.product(before), math.product(after), false);
        } catch (const Error&) {  // longer than an expression may be: not checked
        }
    }

    /// The last dimensions of both but `apart`, aligned from the right.
    void broadcasts(TensorId input, TensorId output, std::size_t apart) {
        if (!known(input)) return;
        for (std::size_t i = apart; i < rank(input) && i < rank(output); ++i)
            equal(shape(input)[rank(input) - 1 - i], shape(output)[rank(output) - 1 - i], true);
    }

    void product(const Op& op) {
        const TensorId a = op.inputs[0], b = op.inputs[1];
        if (!known(a) || !known(b) || rank(a) < 2 || rank(b) < 2) return;
        const std::size_t k_of_a = op.integer("transpose_a", 0) != 0 ? 2 : 1;
        const std::size_t k_of_b = op.integer("transpose_b", 0) != 0 ? 1 : 2;
        equal(shape(a)[rank(a) - k_of_a], shape(b)[rank(b) - k_of_b], false);
        for (const TensorId operand : {a, b}) broadcasts(operand, op.outputs[0], 2);
    }

    void joined(const Op& op) {
        const auto axis = static_cast<std::size_t>(op.integer("axis", 0));
        for (const TensorId input : op.inputs) {
            if (!known(input) || rank(input) != rank(op.outputs[0])) continue;
            for (std::size_t i = 0; i < rank(input); ++i)
                if (i != axis) equal(shape(input)[i], shape(op.outputs[0])[i], true);
        }
    }

    Graph& graph_;
    ExpressionPool& pool_;
    const Op* op_ = nullptr;
};

}  // namespace

void find_size_checks(Graph& graph) {
    graph.size_checks.clear();
    SizeChecks(graph).run();
}

}  // namespace ftax
