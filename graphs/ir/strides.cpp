#include "graphs/ir/strides.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "graphs/ir/operands.hpp"
#include "graphs/ir/shape_rules.hpp"

namespace ftax {
namespace {

class StridePropagation {
  public:
    explicit StridePropagation(Graph& graph) : graph_(graph), pool_(graph.expressions), math_(pool_) {}

    void run() {
        for (const Op& op : graph_.ops) {
            const TensorId input = op.inputs.empty() ? no_tensor : op.inputs[0];
            if (input == no_tensor || !graph_.tensors[input].known_shape) continue;
            for (const TensorId output : op.outputs) {
                Tensor& tensor = graph_.tensors[output];
                if (!tensor.known_shape || !tensor.strides.empty()) continue;
                tensor.strides = strides_unless_contiguous(op, graph_.tensors[input], tensor);
            }
        }
    }

    /// Keeps strides downstream of nothing that differs: the exporter knew more about odd views than these rules do.
    void run_for_cuda(bool channels_last) {
        std::vector<bool> differs(graph_.tensors.size(), false);
        const auto set = [&](TensorId id, Dims strides) {
            if (graph_.tensors[id].strides == strides) return;
            graph_.tensors[id].strides = std::move(strides);
            differs[id] = true;
        };
        if (channels_last) {
            for (TensorId id = 0; id < graph_.tensors.size(); ++id) {
                const Tensor& tensor = graph_.tensors[id];
                const bool given = tensor.role == TensorRole::input || tensor.role == TensorRole::weight;
                if (given && tensor.known_shape && tensor.shape.size() == 4 && is_float(tensor.dtype))
                    set(id, math_.unless_contiguous(tensor.shape, channels_last_strides(tensor.shape)));
            }
        }
        for (const Op& op : graph_.ops) {
            const TensorId input = op.inputs.empty() ? no_tensor : op.inputs[0];
            if (input == no_tensor || !graph_.tensors[input].known_shape) continue;
            const bool moved =
                std::ranges::any_of(op.inputs, [&](TensorId id) { return id != no_tensor && differs[id]; });
            if (!moved && op.kind != OpKind::conv && op.kind != OpKind::conv_transpose && op.kind != OpKind::attention)
                continue;
            for (const TensorId output : op.outputs) {
                if (!graph_.tensors[output].known_shape) continue;
                set(output, strides_unless_contiguous(op, graph_.tensors[input], graph_.tensors[output]));
            }
        }
    }

  private:
    Dims strides_unless_contiguous(const Op& op, const Tensor& in, const Tensor& out) {
        auto strides = strides_after(op, in, out);
        return strides ? math_.unless_contiguous(out.shape, std::move(*strides)) : Dims{};
    }

    Dims channels_last_strides(const Dims& shape) {
        Dims strides(shape.size());
        strides[1] = pool_.constant(1);
        Expression step = shape[1];
        for (std::size_t i = shape.size(); i-- > 2; step = pool_.multiply(step, shape[i])) strides[i] = step;
        strides[0] = step;
        return strides;
    }

    bool is_channels_last(const Tensor& tensor) {
        if (tensor.strides.empty() || (tensor.shape.size() != 4 && tensor.shape.size() != 5)) return false;
        const Dims wanted = channels_last_strides(tensor.shape);
        for (std::size_t i = 1; i < wanted.size(); ++i)
            if (!is_one(tensor.shape[i]) && tensor.strides[i] != wanted[i]) return false;
        return true;
    }

    /// cuDNN's convolutions are NHWC when the input or the filter is.
    /// Source: aten/src/ATen/native/ConvUtils.h, cudnn_conv_suggest_memory_format.
    std::optional<Dims> convolved(const Op& op, const Tensor& in, const Tensor& out) {
        if (out.shape.size() != 4 && out.shape.size() != 5) return std::nullopt;
        const bool filter =
            op.inputs.size() > 1 && op.inputs[1] != no_tensor && is_channels_last(graph_.tensors[op.inputs[1]]);
        if (!filter && !is_channels_last(in)) return std::nullopt;
        return channels_last_strides(out.shape);
    }

    std::optional<Dims> in_format_of(const Tensor& in, const Tensor& out) {
        if (in.shape.size() != out.shape.size() || !is_channels_last(in)) return std::nullopt;
        return channels_last_strides(out.shape);
    }

    /// Fused attention writes [batch, sequence, head, …] and returns it with heads before the sequence.
    /// Source: aten/src/ATen/native/transformers/cuda/attention.cu (output like the transposed query).
    std::optional<Dims> attended(const Tensor& out) {
        if (out.shape.size() != 4) return std::nullopt;
        Dims strides(4);
        strides[3] = pool_.constant(1);
        strides[1] = out.shape[3];
        strides[2] = pool_.multiply(strides[1], out.shape[1]);
        strides[0] = pool_.multiply(strides[2], out.shape[2]);
        return strides;
    }

    Dims strides_of(const Tensor& tensor) {
        return tensor.strides.empty() ? math_.contiguous_strides(tensor.shape) : tensor.strides;
    }

    bool is_one(Expression e) const { return pool_.constant_value(e) == 1; }

    /// nullopt: the output owns contiguous memory.
    std::optional<Dims> strides_after(const Op& op, const Tensor& in, const Tensor& out) {
        using enum OpKind;
        if (op.is(transpose)) return permuted(op, in);
        if (op.is(slice, split)) return cut(op, in, out);
        if (op.is(expand)) return expanded(in, out);
        if (op.is(reshape) && !in.strides.empty()) return viewed(in, out.shape);
        if (op.is(pointwise, cast, identity)) return elementwise(op, out);
        if (op.is(conv, conv_transpose)) return convolved(op, in, out);
        if (op.is(attention)) return attended(out);
        if (op.is(batch_norm, pool, global_pool, resize, pad, concat, reduce)) return in_format_of(in, out);
        return std::nullopt;
    }

    std::optional<Dims> permuted(const Op& op, const Tensor& in) {
        const auto perm = op.integers("perm");
        if (perm.size() != in.shape.size()) return std::nullopt;
        const Dims before = strides_of(in);
        return mapped(perm, [&](std::int64_t axis) { return before[static_cast<std::size_t>(axis)]; });
    }

    /// Slices, chunk and split keep the rank; select and unbind drop their axis.
    std::optional<Dims> cut(const Op& op, const Tensor& in, const Tensor& out) {
        Dims strides = strides_of(in);
        const std::int64_t split_axis = op.integer("axis", 0);
        const auto axes = op.is(OpKind::split) ? std::span(&split_axis, 1) : op.integers("axes");
        const bool drops = in.shape.size() == out.shape.size() + 1 && axes.size() == 1;
        if (drops && static_cast<std::size_t>(axes[0]) < strides.size()) {
            strides.erase(strides.begin() + axes[0]);
            return strides;
        }
        if (out.shape.size() != in.shape.size()) return std::nullopt;
        const auto steps = op.integers("step");
        for (std::size_t i = 0; i < steps.size() && i < axes.size(); ++i) {
            Expression& stride = strides[static_cast<std::size_t>(axes[i])];
            stride = pool_.multiply(stride, pool_.constant(steps[i]));
        }
        return strides;
    }

    std::optional<Dims> expanded(const Tensor& in, const Tensor& out) {
        const Dims before = strides_of(in);
        if (before.size() > out.shape.size()) return std::nullopt;
        const std::size_t added = out.shape.size() - before.size();
        Dims after(added, pool_.constant(0));
        for (std::size_t i = 0; i < before.size(); ++i)
            after.push_back(is_one(in.shape[i]) && !is_one(out.shape[added + i]) ? pool_.constant(0) : before[i]);
        return after;
    }

    /// Strides that show the same memory in another shape; nullopt where a copy is needed.
    /// Source: computeStride in PyTorch's aten/src/ATen/TensorUtils.cpp.
    std::optional<Dims> viewed(const Tensor& in, const Dims& shape) {
        if (in.shape.empty()) return std::nullopt;
        Dims strides(shape.size());
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
    std::optional<Dims> elementwise(const Op& op, const Tensor& out) {
        for (const TensorId input : present(op.inputs)) {
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
    DimensionMath math_;
};

}  // namespace

void propagate_strides(Graph& graph) {
    StridePropagation(graph).run();
}

void lay_out_for_cuda(Graph& graph, bool channels_last) {
    StridePropagation(graph).run_for_cuda(channels_last);
}

}  // namespace ftax
