#include <algorithm>
#include <optional>

#include "graphs/base/checked_math.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/loading.hpp"

namespace ftax {
namespace {

/// The batch within a tensor: dimension `axis` has outer × batch × (the rest) elements.
struct Carrier {
    std::size_t axis = 0;
    std::int64_t outer = 1;
    friend bool operator==(const Carrier&, const Carrier&) = default;
};
/// Nullopt for a tensor whose size does not depend on the batch.
using Place = std::optional<Carrier>;

/// Thrown inside BatchFollower::run where the batch would be normalised, contracted or reduced.
struct NotFollowed {
    std::size_t op;
};

/// Finds the dimension that holds the batch in every tensor. A reshape at batch 1 may leave several: each is tried
/// until no operator mixes the batch with something else.
class BatchFollower {
  public:
    BatchFollower(Graph& graph, Expression batch, const std::vector<TensorId>& inputs)
        : graph_(graph), batch_(batch), places_(graph.tensors.size()) {
        for (const TensorId id : inputs) {
            held_ = graph.expressions.constant_value(graph.tensors[id].shape[0]).value();
            places_[id] = Carrier{};
        }
    }

    void run() {
        std::optional<NotFollowed> first;
        for (std::size_t at = 0, retries = 0; at < graph_.ops.size();) {
            try {
                follow(at, 0);
                ++at;
            } catch (const NotFollowed& stuck) {
                if (!first) first = stuck;
                if (choices_.empty() || ++retries > max_retries) fail(graph_.ops[first->op]);
                at = retry();
            }
        }
        for (TensorId id = 0; id < graph_.tensors.size(); ++id)
            if (places_[id]) rescale(graph_.tensors[id], *places_[id]);
    }

  private:
    static constexpr std::size_t max_retries = 2000;

    /// A reshape with more than one candidate left, and how many places were set before it.
    struct Choice {
        std::size_t op, next, changes;
    };

    [[noreturn]] void fail(const Op& op) const {
        throw_error(ErrorCode::usage,
                    "the batch of {} is fixed to {} and cannot be followed through {} ({}); export the "
                    "model with a dynamic batch",
                    graph_.name, held_, op.name, op.source);
    }

    void require(bool condition) const {
        if (!condition) throw NotFollowed{at_};
    }

    /// Undoes everything since the last choice and takes its next candidate. Returns the operator to go on with.
    std::size_t retry() {
        while (!choices_.empty()) {
            const Choice choice = choices_.back();
            choices_.pop_back();
            for (; changes_.size() > choice.changes; changes_.pop_back())
                places_[changes_.back().first] = changes_.back().second;
            try {
                follow(choice.op, choice.next);
                return choice.op + 1;
            } catch (const NotFollowed&) {  // the choice before it
            }
        }
        return at_;
    }

    void set(TensorId id, const Place& place) {
        if (places_[id] == place) return;
        changes_.emplace_back(id, places_[id]);
        places_[id] = place;
    }

    [[nodiscard]] const Tensor& tensor(TensorId id) const { return graph_.tensors[id]; }
    [[nodiscard]] std::int64_t size(TensorId id, std::size_t axis) const {
        return graph_.expressions.constant_value(tensor(id).shape[axis]).value_or(0);
    }
    [[nodiscard]] std::size_t rank(TensorId id) const { return tensor(id).shape.size(); }
    [[nodiscard]] Place place(const Op& op, std::size_t input) const {
        return input < op.inputs.size() && op.inputs[input] != no_tensor ? places_[op.inputs[input]] : std::nullopt;
    }

    /// The first operand with a place.
    [[nodiscard]] auto first_placed(const Op& op) const {
        return std::ranges::find_if(op.inputs, [&](TensorId id) { return id != no_tensor && places_[id]; });
    }

    void follow(std::size_t index, std::size_t candidate) {
        at_ = index;
        const Op& op = graph_.ops[index];
        if (first_placed(op) == op.inputs.end()) return;
        for (const TensorId output : op.outputs) {
            if (!tensor(output).known_shape) continue;
            const Place found = op.kind == OpKind::reshape ? reshaped(op, output, candidate) : place_in(op, output);
            if (found) {
                require(found->axis < rank(output));
                require(size(output, found->axis) % checked_multiply(found->outer, held_) == 0);
            }
            set(output, found);
        }
    }

    Place place_in(const Op& op, TensorId output) {
        using enum OpKind;
        if (op.is(matmul)) return multiplied(op, output);
        if (op.is(pointwise, expand)) return aligned_right(op, output);
        if (op.is(concat)) return joined(op);
        if (op.is(embedding)) {
            require(!place(op, 0));
            return place(op, 1);
        }
        if (op.is(gather)) return looked_up(op, output);
        if (op.is(transpose)) return permuted(op);
        if (op.is(split, slice)) return cut(op, output);
        if (op.is(reduce)) return reduced(op, output);
        if (op.is(recurrent)) return stepped(op, output);
        if (op.is(fill, shape)) return std::nullopt;
        require(!op.is(control, nonzero));
        return kept(op, output);
    }

    /// Place in the first operand that has one, which the operator must not work along.
    Place kept(const Op& op, TensorId output) {
        const auto found = first_placed(op);
        const TensorId from = *found;
        const Carrier carrier = *places_[from];
        const auto axis = static_cast<std::int64_t>(carrier.axis);
        const auto last = static_cast<std::int64_t>(rank(from)) - 1;
        using enum OpKind;
        if (op.is(linear)) require(found == op.inputs.begin() && axis != last);
        if (op.is(softmax, log_softmax, cumulative, sort)) require(op.integer("axis", last) != axis);
        if (op.is(layer_norm, rms_norm)) require(axis < op.integer("axis", last));
        if (op.is(batch_norm, local_response_norm)) require(axis != 1);
        if (op.is(conv, conv_transpose, group_norm)) require(found == op.inputs.begin() && axis == 0);
        if (op.is(attention)) {
            require(axis < last - 1);
            for (std::size_t i = 0; i < 3 && i < op.inputs.size(); ++i) carry(op.inputs[i], carrier);
        }
        if (op.is(scatter)) carry(op.inputs[0], carrier);
        require(rank(output) > carrier.axis);
        if (op.kind == OpKind::copy && rank(output) >= rank(from)) {  // as it was, or tiled
            const std::size_t at = carrier.axis + rank(output) - rank(from);
            const std::int64_t before = size(from, carrier.axis), after = size(output, at);
            require(before > 0 && after > 0 && after % before == 0);
            return Carrier{at, checked_multiply(carrier.outer, after / before)};
        }
        require(size(output, carrier.axis) == size(from, carrier.axis));
        return carrier;
    }

    /// Lets an operand hold the batch that another one has at the same place: an exporter computed it for its batch.
    void carry(TensorId id, const Carrier& wanted) {
        if (id == no_tensor || !tensor(id).known_shape) return;
        if (places_[id]) return require(*places_[id] == wanted);
        if (wanted.axis >= rank(id)) return;
        const OpId producer = tensor(id).producer;
        if (producer == no_op && size(id, wanted.axis) == 1) return;  // a parameter of all items
        require(size(id, wanted.axis) % checked_multiply(wanted.outer, held_) == 0);
        set(id, wanted);
        if (producer == no_op) return;
        const Op& op = graph_.ops[producer];
        using enum OpKind;
        if (op.is(fill, expand, gather, embedding)) return;
        if (op.is(linear, layer_norm, identity)) return carry_aligned(op.inputs[0], wanted, rank(id));
        require(op.is(pointwise, cast, copy));
        for (const TensorId input : op.inputs) carry_aligned(input, wanted, rank(id));
    }

    /// carry() for an operand that is broadcast to `out_rank` dimensions: where it has 1, it stays as it is.
    void carry_aligned(TensorId id, const Carrier& wanted, std::size_t out_rank) {
        if (id == no_tensor || !tensor(id).known_shape || rank(id) > out_rank) return;
        const std::size_t shift = out_rank - rank(id);
        if (wanted.axis < shift || size(id, wanted.axis - shift) == 1) return;
        carry(id, {wanted.axis - shift, wanted.outer});
    }

    /// Broadcasting aligns dimensions from the right.
    Place aligned_right(const Op& op, TensorId output) {
        const std::size_t out_rank = rank(output);
        Place result;
        for (const TensorId input : op.inputs) {
            if (input == no_tensor || !places_[input]) continue;
            require(rank(input) <= out_rank);
            const Carrier at{places_[input]->axis + out_rank - rank(input), places_[input]->outer};
            if (result && *result != at) {
                // Operators such as rotary embeddings take operands that are not broadcast: the first one decides.
                require(!broadcasts(input, output));
                continue;
            }
            if (!result) result = at;
        }
        for (const TensorId input : op.inputs)
            if (input != no_tensor && !places_[input]) carry_aligned(input, *result, out_rank);
        return result;
    }

    [[nodiscard]] bool broadcasts(TensorId input, TensorId output) const {
        const std::size_t shift = rank(output) - rank(input);
        for (std::size_t i = 0; i < rank(input); ++i)
            if (size(input, i) != 1 && size(input, i) != size(output, i + shift)) return false;
        return true;
    }

    Place multiplied(const Op& op, TensorId output) {
        const std::size_t out_rank = rank(output);
        const std::size_t rows = op.inputs.size() > 0 && rank(op.inputs[0]) > 1 ? 1 : 0;
        const std::size_t columns = op.inputs.size() > 1 && rank(op.inputs[1]) > 1 ? 1 : 0;
        require(out_rank >= rows + columns);
        const std::size_t batch_rank = out_rank - rows - columns;
        Place result;
        for (std::size_t i = 0; i < op.inputs.size(); ++i) {
            const Place held = place(op, i);
            if (!held) continue;
            const TensorId id = op.inputs[i];
            Carrier at = *held;
            if (i > 1) {  // added to the product
                at.axis += out_rank - rank(id);
            } else {
                const std::size_t matrix = std::min<std::size_t>(rank(id), 2), from_end = rank(id) - at.axis;
                const bool turned = op.integer(i == 0 ? "transpose_a" : "transpose_b", 0) != 0;
                const std::size_t contracted = matrix == 1 || (i == 0) != turned ? 1 : 2;
                require(from_end != contracted);
                if (from_end <= matrix) {
                    at.axis = i == 0 ? batch_rank : out_rank - 1;
                } else {
                    at.axis += batch_rank + matrix - rank(id);
                }
            }
            require(!result || *result == at);
            result = at;
        }
        for (std::size_t i = 0; i < 2 && i < op.inputs.size() && result->axis < batch_rank; ++i) {
            const TensorId id = op.inputs[i];
            if (!place(op, i)) carry_aligned(id, *result, batch_rank + std::min<std::size_t>(rank(id), 2));
        }
        return result;
    }

    Place joined(const Op& op) {
        const Place result = places_[*first_placed(op)];
        for (const TensorId input : op.inputs) carry(input, *result);
        const auto axis = static_cast<std::size_t>(op.integer("axis", 0));
        if (axis != result->axis || op.inputs.size() < 2) return result;
        for (const TensorId input : op.inputs) require(result->outer == 1 && size(input, axis) == held_);
        return Carrier{axis, static_cast<std::int64_t>(op.inputs.size())};
    }

    /// data[…, indices, …]: the dimensions of the indices replace the indexed dimension.
    Place looked_up(const Op& op, TensorId output) {
        if (op.inputs.size() < 2 || rank(output) + 1 != rank(op.inputs[0]) + rank(op.inputs[1]))
            return kept(op, output);
        const auto axis = static_cast<std::size_t>(op.integer("axis", 0));
        const Place data = place(op, 0), indices = place(op, 1);
        require(!data || !indices);
        if (indices) return Carrier{indices->axis + axis, indices->outer};
        require(data->axis != axis);
        return Carrier{data->axis + (data->axis > axis ? rank(op.inputs[1]) - 1 : 0), data->outer};
    }

    Place permuted(const Op& op) const {
        const auto perm = op.integers("perm");
        const Carrier carrier = *place(op, 0);
        const auto at = std::ranges::find(perm, static_cast<std::int64_t>(carrier.axis));
        require(at != perm.end());
        return Carrier{static_cast<std::size_t>(at - perm.begin()), carrier.outer};
    }

    Place without_axis(const Carrier& carrier, std::size_t axis) const {
        require(axis != carrier.axis);
        return Carrier{carrier.axis - (axis < carrier.axis ? 1 : 0), carrier.outer};
    }

    Place cut(const Op& op, TensorId output) {
        const Carrier carrier = place(op, 0).value_or(Carrier{});
        require(place(op, 0).has_value());
        const TensorId from = op.inputs[0];
        const auto axes = op.integers("axes");
        if (rank(output) + 1 == rank(from))
            return without_axis(carrier, static_cast<std::size_t>(axes.empty() ? op.integer("axis", 0) : axes[0]));
        require(rank(output) >= rank(from));  // unfold appends a dimension
        const std::int64_t whole = size(from, carrier.axis), part = size(output, carrier.axis);
        if (part == whole) return carrier;
        require(carrier.outer > 1 && whole == checked_multiply(carrier.outer, held_) && part == held_);
        return Carrier{carrier.axis, 1};  // one of several batches that were joined
    }

    Place reduced(const Op& op, TensorId output) const {
        require(place(op, 0).has_value());
        const Carrier carrier = *place(op, 0);
        std::size_t before = 0;
        for (const std::int64_t axis : op.integers("axes")) {
            require(static_cast<std::size_t>(axis) != carrier.axis);
            before += static_cast<std::size_t>(axis) < carrier.axis;
        }
        if (rank(output) == rank(op.inputs[0])) return carrier;
        return Carrier{carrier.axis - before, carrier.outer};
    }

    /// x[steps, batch, input] to [steps, batch, hidden] (PyTorch) or [steps, directions, batch, hidden] (ONNX).
    Place stepped(const Op& op, TensorId output) const {
        require(place(op, 0).has_value());
        const Carrier carrier = *place(op, 0);
        const bool batch_first = op.integer("batch_first", 0) != 0;
        require(rank(op.inputs[0]) == 3 && carrier.axis == (batch_first ? 0 : 1));
        const bool onnx = rank(op.outputs[0]) == 4;
        if (output == op.outputs[0])
            return Carrier{onnx && !batch_first ? std::size_t{2} : carrier.axis, carrier.outer};
        require(rank(output) >= 2);
        return Carrier{onnx && batch_first ? 0 : rank(output) - 2, carrier.outer};
    }

    /// A reshape keeps the order of elements: as many elements lie outside of the batch as before.
    Place reshaped(const Op& op, TensorId output, std::size_t candidate) {
        require(place(op, 0).has_value());
        const Carrier carrier = *place(op, 0);
        const TensorId from = op.inputs[0];
        const std::int64_t axis = op.integer("axis", -1);
        if (axis >= 0 && rank(output) == rank(from) + 1)
            return Carrier{carrier.axis + (static_cast<std::size_t>(axis) <= carrier.axis ? 1 : 0), carrier.outer};
        if (axis >= 0 && rank(output) + 1 == rank(from)) return without_axis(carrier, static_cast<std::size_t>(axis));
        std::int64_t wanted = carrier.outer;
        for (std::size_t i = 0; i < carrier.axis; ++i) wanted = checked_multiply(wanted, size(from, i));
        std::vector<Carrier> whole,
            inside;  // dimensions that start with the batch, and those that contain it further in
        std::int64_t outside = 1;
        for (std::size_t i = 0; i < rank(output) && outside <= wanted && outside > 0; ++i) {
            const std::int64_t outer = wanted / outside;
            const bool holds = wanted % outside == 0 && size(output, i) % checked_multiply(outer, held_) == 0;
            if (holds) (outer == 1 ? whole : inside).push_back({i, outer});
            outside = checked_multiply(outside, size(output, i));
        }
        const auto same = std::ranges::find(whole, carrier);
        if (same != whole.end()) std::rotate(whole.begin(), same, same + 1);
        whole.insert(whole.end(), inside.begin(), inside.end());
        require(candidate < whole.size());
        if (candidate + 1 < whole.size()) choices_.push_back({at_, candidate + 1, changes_.size()});
        return whole[candidate];
    }

    void rescale(Tensor& tensor, const Carrier& carrier) {
        const auto scaled = [&](std::int64_t value) {
            return graph_.expressions.multiply(graph_.expressions.constant(value / held_), batch_);
        };
        const auto number = [&](Expression e) { return graph_.expressions.constant_value(e).value_or(0); };
        const std::int64_t length = number(tensor.shape[carrier.axis]);
        if (!tensor.strides.empty()) {
            // Dimensions that lie outside of the batch in memory step over all of it.
            const std::int64_t extent = checked_multiply(number(tensor.strides[carrier.axis]), length);
            for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
                const std::int64_t stride = number(tensor.strides[i]);
                const bool longer = number(tensor.shape[i]) > 1;
                if (i != carrier.axis && extent > 0 && longer && stride >= extent && stride % extent == 0)
                    tensor.strides[i] = scaled(stride);
            }
        }
        tensor.shape[carrier.axis] = scaled(length);
    }

    Graph& graph_;
    Expression batch_;
    std::int64_t held_ = 1;
    std::size_t at_ = 0;
    std::vector<Place> places_;
    std::vector<std::pair<TensorId, Place>> changes_;
    std::vector<Choice> choices_;
};

/// Inputs whose leading dimension is taken for the batch.
std::vector<TensorId> inputs_with_batch(const Graph& graph) {
    std::optional<std::int64_t> held;
    std::vector<TensorId> inputs;
    // Scalars and lists such as time steps or sizes need not be of the batch.
    for (const std::size_t least_rank : {std::size_t{2}, std::size_t{1}}) {
        for (const TensorId id : graph.inputs) {
            const auto& shape = graph.tensors[id].shape;
            if (shape.size() < least_rank) continue;
            const auto size = graph.expressions.constant_value(shape[0]);
            if (size && *size > 0 && (!held || *size == *held)) {
                held = size;
                if (std::ranges::find(inputs, id) == inputs.end()) inputs.push_back(id);
            } else if (least_rank == 2) {
                throw_error(ErrorCode::usage, "the inputs of {} have no fixed leading dimension in common", graph.name);
            }
        }
    }
    if (inputs.empty()) throw_error(ErrorCode::usage, "no input of {} has a fixed leading dimension", graph.name);
    return inputs;
}

}  // namespace

void vary_batch(Graph& graph, Expression batch) {
    vary_batch(graph, batch, inputs_with_batch(graph));
}

void vary_batch(Graph& graph, Expression batch, const std::vector<TensorId>& inputs) {
    BatchFollower(graph, batch, inputs).run();
}

}  // namespace ftax
