#include "graphs/vary_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ftax/error.hpp"
#include "src/core/checked_math.hpp"

namespace ftax {
namespace {

/// Index of the dimension whose outermost factor is the batch; nullopt for a tensor that does not depend on it.
using Carrier = std::optional<std::size_t>;
using Numbers = std::vector<std::int64_t>;

class BatchFollower {
  public:
    BatchFollower(Graph& graph, Expression batch) : graph_(graph), batch_(batch), carriers_(graph.tensors.size()) {}

    void run() {
        read_inputs();
        for (const Op& op : graph_.ops) follow(op);
        for (TensorId id = 0; id < graph_.tensors.size(); ++id) {
            if (carriers_[id]) rescale(graph_.tensors[id], *carriers_[id]);
        }
    }

  private:
    [[noreturn]] void fail(const Op& op) const {
        throw Error(ErrorCode::usage,
                    fmt::format("the batch of {} is fixed to {} and cannot be followed through {} ({}); export the "
                                "model with a dynamic batch",
                                graph_.name, held_, op.name, op.source));
    }

    void read_inputs() {
        for (const TensorId id : graph_.inputs) {
            const Tensor& input = graph_.tensors[id];
            const auto leading = input.shape.empty() ? std::nullopt : number(input.shape[0]);
            if (!leading || (held_ != 0 && *leading != held_) || *leading < 1) {
                throw Error(ErrorCode::usage,
                            fmt::format("the inputs of {} have no fixed leading dimension in common", graph_.name));
            }
            held_ = *leading;
            carriers_[id] = 0;
        }
    }

    std::optional<std::int64_t> number(Expression e) const { return graph_.expressions.constant_value(e); }

    Numbers shape(TensorId id) const {
        Numbers result;
        for (const Expression dim : graph_.tensors[id].shape) result.push_back(number(dim).value_or(0));
        return result;
    }

    void follow(const Op& op) {
        const bool depends = std::any_of(op.inputs.begin(), op.inputs.end(),
                                         [&](TensorId id) { return id != no_tensor && carriers_[id]; });
        if (!depends) return;
        for (const TensorId output : op.outputs) {
            if (!graph_.tensors[output].known_shape) continue;
            const Carrier carrier = carrier_of(op, output);
            if (carrier && (*carrier >= graph_.tensors[output].shape.size() || shape(output)[*carrier] % held_ != 0))
                fail(op);
            carriers_[output] = carrier;
        }
    }

    Carrier carrier_of(const Op& op, TensorId output) const {
        switch (op.kind) {
            case OpKind::matmul:
                return aligned_right(op, output, op.inputs.size());
            case OpKind::pointwise:
            case OpKind::expand:
            case OpKind::copy:
            case OpKind::scatter:
                return aligned_right(op, output, op.inputs.size());
            case OpKind::concat:
                return first_carrier(op, 0);
            case OpKind::embedding:
                return first_carrier(op, 1);
            case OpKind::transpose:
                return permuted(op);
            case OpKind::reshape:
                return reshaped(op, output);
            case OpKind::split:
            case OpKind::slice:
                return sliced(op, output);
            case OpKind::reduce:
                return reduced(op, output);
            case OpKind::fill:
            case OpKind::shape:
                return std::nullopt;
            case OpKind::control:
            case OpKind::nonzero:
                fail(op);
            default:
                return kept(op, output);
        }
    }

    Carrier first_carrier(const Op& op, std::size_t from) const {
        for (std::size_t i = from; i < op.inputs.size(); ++i) {
            if (op.inputs[i] != no_tensor && carriers_[op.inputs[i]]) return carriers_[op.inputs[i]];
        }
        fail(op);
    }

    /// Broadcasting aligns dimensions from the right.
    Carrier aligned_right(const Op& op, TensorId output, std::size_t inputs) const {
        const std::size_t rank = graph_.tensors[output].shape.size();
        Carrier result;
        for (std::size_t i = 0; i < inputs; ++i) {
            const TensorId input = op.inputs[i];
            if (input == no_tensor || !carriers_[input]) continue;
            const std::size_t input_rank = graph_.tensors[input].shape.size();
            if (input_rank > rank) fail(op);
            const std::size_t at = *carriers_[input] + rank - input_rank;
            if (result && *result != at) fail(op);
            result = at;
        }
        return result;
    }

    /// One-to-one operators, windows, norms, lookups: the dimension stays where it is.
    Carrier kept(const Op& op, TensorId output) const {
        const Carrier carrier = first_carrier(op, 0);
        if (shape(output).size() <= *carrier) fail(op);
        return carrier;
    }

    Carrier permuted(const Op& op) const {
        const auto perm = op.integers("perm");
        const Carrier carrier = first_carrier(op, 0);
        const auto at = std::find(perm.begin(), perm.end(), static_cast<std::int64_t>(*carrier));
        if (at == perm.end()) fail(op);
        return static_cast<std::size_t>(at - perm.begin());
    }

    Carrier without_axis(const Op& op, std::size_t axis) const {
        const Carrier carrier = first_carrier(op, 0);
        if (axis == *carrier) fail(op);
        return *carrier - (axis < *carrier ? 1 : 0);
    }

    Carrier sliced(const Op& op, TensorId output) const {
        const std::size_t rank = graph_.tensors[op.inputs[0]].shape.size();
        if (graph_.tensors[output].shape.size() >= rank) return kept(op, output);  // unfold appends a dimension
        if (graph_.tensors[output].shape.size() + 1 != rank) fail(op);
        return without_axis(op, static_cast<std::size_t>(op.integer("axis", 0)));
    }

    Carrier reduced(const Op& op, TensorId output) const {
        const Carrier carrier = first_carrier(op, 0);
        std::size_t before = 0;
        for (const std::int64_t axis : op.integers("axes")) {
            if (static_cast<std::size_t>(axis) == *carrier) fail(op);
            before += static_cast<std::size_t>(axis) < *carrier;
        }
        const bool keeps = graph_.tensors[output].shape.size() == graph_.tensors[op.inputs[0]].shape.size();
        return keeps ? *carrier : *carrier - before;
    }

    /// A reshape keeps the order of elements: the batch starts where as many elements lie outside of it as before.
    Carrier reshaped(const Op& op, TensorId output) const {
        const Carrier carrier = first_carrier(op, 0);
        const Numbers from = shape(op.inputs[0]), to = shape(output);
        const std::int64_t axis = op.integer("axis", -1);
        if (axis >= 0 && to.size() == from.size() + 1)
            return *carrier + (static_cast<std::size_t>(axis) <= *carrier ? 1 : 0);
        if (axis >= 0 && to.size() + 1 == from.size()) return without_axis(op, static_cast<std::size_t>(axis));
        const auto outside = [](const Numbers& dims, std::size_t index) {
            std::int64_t product = 1;
            for (std::size_t i = 0; i < index; ++i) product = checked_multiply(product, dims[i]);
            return product;
        };
        const std::int64_t wanted = outside(from, *carrier);
        if (*carrier < to.size() && outside(to, *carrier) == wanted && to[*carrier] % held_ == 0) return carrier;
        for (std::size_t i = 0; i < to.size(); ++i) {
            if (outside(to, i) == wanted && to[i] % held_ == 0) return i;
        }
        fail(op);
    }

    void rescale(Tensor& tensor, std::size_t carrier) {
        const auto scaled = [&](std::int64_t value) {
            return graph_.expressions.multiply(graph_.expressions.constant(value / held_), batch_);
        };
        const std::int64_t size = *number(tensor.shape[carrier]);
        if (!tensor.strides.empty()) {
            // Dimensions that lie outside of the batch in memory step over all of it.
            const std::int64_t extent = checked_multiply(number(tensor.strides[carrier]).value_or(0), size);
            for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
                const std::int64_t stride = number(tensor.strides[i]).value_or(0);
                const bool longer = number(tensor.shape[i]).value_or(0) > 1;
                if (i != carrier && extent > 0 && longer && stride >= extent && stride % extent == 0) {
                    tensor.strides[i] = scaled(stride);
                }
            }
        }
        tensor.shape[carrier] = scaled(size);
    }

    Graph& graph_;
    Expression batch_;
    std::int64_t held_ = 0;
    std::vector<Carrier> carriers_;
};

}  // namespace

void vary_batch(Graph& graph, Expression batch) {
    BatchFollower(graph, batch).run();
}

}  // namespace ftax
