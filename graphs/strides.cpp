#include <algorithm>
#include <optional>

#include "graphs/canonical.hpp"

namespace ftax {
namespace {

using Expressions = std::vector<Expression>;

class StridePropagation {
  public:
    explicit StridePropagation(Graph& graph) : graph_(graph), pool_(graph.expressions) {}

    void run() {
        for (const Op& op : graph_.ops) {
            const TensorId input = op.inputs.empty() ? no_tensor : op.inputs[0];
            if (input == no_tensor || !graph_.tensors[input].known_shape) continue;
            for (const TensorId output : op.outputs) {
                Tensor& tensor = graph_.tensors[output];
                if (!tensor.known_shape || !tensor.strides.empty()) continue;
                auto strides = strides_after(op, graph_.tensors[input], tensor);
                if (strides && !is_contiguous(tensor.shape, *strides)) tensor.strides = std::move(*strides);
            }
        }
    }

  private:
    Expressions strides_of(const Tensor& tensor) {
        return tensor.strides.empty() ? contiguous(tensor.shape) : tensor.strides;
    }

    Expressions contiguous(const Expressions& shape) {
        Expressions strides(shape.size());
        Expression step = pool_.constant(1);
        for (std::size_t i = shape.size(); i-- > 0;) {
            strides[i] = step;
            step = pool_.multiply(step, shape[i]);
        }
        return strides;
    }

    bool is_one(Expression e) const { return pool_.constant_value(e) == 1; }

    /// The stride of a dimension of size 1 does not matter.
    bool is_contiguous(const Expressions& shape, const Expressions& strides) {
        Expression step = pool_.constant(1);
        for (std::size_t i = shape.size(); i-- > 0;) {
            if (is_one(shape[i])) continue;
            if (strides[i] != step) return false;
            step = pool_.multiply(step, shape[i]);
        }
        return true;
    }

    /// nullopt: the output owns contiguous memory.
    std::optional<Expressions> strides_after(const Op& op, const Tensor& in, const Tensor& out) {
        switch (op.kind) {
            case OpKind::transpose:
                return permuted(op, in);
            case OpKind::slice:
                return sliced(op, in, out);
            case OpKind::split:
                if (in.shape.size() != out.shape.size()) return std::nullopt;
                return strides_of(in);
            case OpKind::expand:
                return expanded(in, out);
            case OpKind::reshape:
                if (in.strides.empty()) return std::nullopt;
                return viewed(in, out.shape);
            case OpKind::pointwise:
            case OpKind::cast:
            case OpKind::identity:
                return elementwise(op, out);
            default:
                return std::nullopt;
        }
    }

    std::optional<Expressions> permuted(const Op& op, const Tensor& in) {
        const auto perm = op.integers("perm");
        if (perm.size() != in.shape.size()) return std::nullopt;
        const Expressions before = strides_of(in);
        Expressions after;
        for (const std::int64_t axis : perm) after.push_back(before[static_cast<std::size_t>(axis)]);
        return after;
    }

    std::optional<Expressions> sliced(const Op& op, const Tensor& in, const Tensor& out) {
        Expressions strides = strides_of(in);
        const auto axes = op.integers("axes");
        const auto steps = op.integers("step");
        if (out.shape.size() + axes.size() == in.shape.size() && axes.size() == 1) {  // a select drops its axis
            strides.erase(strides.begin() + axes[0]);
            return strides;
        }
        if (out.shape.size() != in.shape.size()) return std::nullopt;
        for (std::size_t i = 0; i < steps.size() && i < axes.size(); ++i) {
            Expression& stride = strides[static_cast<std::size_t>(axes[i])];
            stride = pool_.multiply(stride, pool_.constant(steps[i]));
        }
        return strides;
    }

    std::optional<Expressions> expanded(const Tensor& in, const Tensor& out) {
        const Expressions before = strides_of(in);
        if (before.size() > out.shape.size()) return std::nullopt;
        const std::size_t added = out.shape.size() - before.size();
        Expressions after(added, pool_.constant(0));
        for (std::size_t i = 0; i < before.size(); ++i) {
            const bool repeated = is_one(in.shape[i]) && !is_one(out.shape[added + i]);
            after.push_back(repeated ? pool_.constant(0) : before[i]);
        }
        return after;
    }

    /// Strides that show the same memory in another shape; nullopt where a copy is needed.
    /// Source: computeStride in PyTorch's aten/src/ATen/TensorUtils.cpp.
    std::optional<Expressions> viewed(const Tensor& in, const Expressions& shape) {
        if (in.shape.empty()) return std::nullopt;
        Expressions strides(shape.size());
        std::size_t left = shape.size();  // dimensions of the new shape not yet placed
        Expression base = in.strides.back();
        Expression chunk = pool_.constant(1);
        Expression placed = pool_.constant(1);
        for (std::size_t d = in.shape.size(); d-- > 0;) {
            chunk = pool_.multiply(chunk, in.shape[d]);
            const bool joined = d > 0 && (is_one(in.shape[d - 1]) || in.strides[d - 1] == pool_.multiply(chunk, base));
            if (joined) continue;
            while (left > 0 && (placed != chunk || is_one(shape[left - 1]))) {
                --left;
                strides[left] = pool_.multiply(placed, base);
                placed = pool_.multiply(placed, shape[left]);
            }
            if (placed != chunk) return std::nullopt;
            if (d > 0) {
                base = in.strides[d - 1];
                chunk = placed = pool_.constant(1);
            }
        }
        if (left > 0) return std::nullopt;
        return strides;
    }

    /// An elementwise result is laid out like its first full operand when that is a permutation of dense memory.
    /// Source: PyTorch's TensorIterator ("allocate_or_resize_outputs" keeps the permutation of the operands).
    std::optional<Expressions> elementwise(const Op& op, const Tensor& out) {
        for (const TensorId input : op.inputs) {
            if (input == no_tensor) continue;
            const Tensor& operand = graph_.tensors[input];
            if (!operand.known_shape || operand.shape != out.shape) continue;
            if (operand.strides.empty() || !is_dense(operand)) return std::nullopt;
            return operand.strides;
        }
        return std::nullopt;
    }

    bool is_dense(const Tensor& tensor) {
        std::vector<bool> seen(tensor.shape.size(), false);
        Expression step = pool_.constant(1);
        for (std::size_t round = 0; round < tensor.shape.size(); ++round) {
            bool found = false;
            for (std::size_t i = tensor.shape.size(); i-- > 0 && !found;) {
                if (seen[i] || (!is_one(tensor.shape[i]) && tensor.strides[i] != step)) continue;
                seen[i] = found = true;
                step = pool_.multiply(step, tensor.shape[i]);
            }
            if (!found) return false;
        }
        return true;
    }

    Graph& graph_;
    ExpressionPool& pool_;
};

}  // namespace

void propagate_strides(Graph& graph) {
    StridePropagation(graph).run();
}

}  // namespace ftax
