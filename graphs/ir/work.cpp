#include "ftax/work.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graphs/base/checked_math.hpp"
#include "graphs/base/data_rows.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/named.hpp"
#include "graphs/base/throw_error.hpp"
#include "graphs/ir/operands.hpp"

namespace ftax {
namespace {

/// What the rules below may ask about one operator.
struct OpView {
    const Graph& graph;
    const Op& op;
    const BoundShapes& bound;

    [[nodiscard]] const Tensor* input(std::size_t i) const { return tensor_at(graph, op.inputs, i); }
    [[nodiscard]] const Tensor* output(std::size_t i) const { return tensor_at(graph, op.outputs, i); }
    [[nodiscard]] std::int64_t elements(const Tensor* tensor) const {
        return tensor && tensor->known_shape ? element_count(*tensor, bound) : 0;
    }
    [[nodiscard]] std::int64_t bytes(const Tensor* tensor) const {
        return tensor && tensor->known_shape ? byte_count(*tensor, bound) : 0;
    }
    /// Dimension counted from the front, or from the back when negative; 1 when the tensor has no such dimension.
    [[nodiscard]] std::int64_t dim(const Tensor* tensor, int index) const {
        if (!tensor) return 1;
        const int rank = static_cast<int>(tensor->shape.size());
        const int at = index < 0 ? index + rank : index;
        return at >= 0 && at < rank ? bound[tensor->shape[at]] : 1;
    }
    /// Elements of one slice tensor[0], e.g. the multiply-adds a filter needs per output element.
    [[nodiscard]] std::int64_t slice_elements(const Tensor* tensor) const {
        std::int64_t count = 1;
        if (!tensor) return count;
        for (std::size_t i = 1; i < tensor->shape.size(); ++i) count = checked_multiply(count, bound[tensor->shape[i]]);
        return count;
    }
};

std::int64_t twice(std::int64_t macs) {
    return checked_multiply(2, macs);
}

// Rules: floating-point operations of each kind. Contractions count 2 per multiply-add and leave the bias out, as
// torch.utils.flop_counter does.

std::int64_t no_flops(const OpView&) {
    return 0;
}

std::int64_t conv_flops(const OpView& v) {
    return twice(checked_multiply(v.elements(v.output(0)), v.slice_elements(v.input(1))));
}

std::int64_t conv_transpose_flops(const OpView& v) {  // every input element meets K/groups × kernel weights
    return twice(checked_multiply(v.elements(v.input(0)), v.slice_elements(v.input(1))));
}

std::int64_t contraction_flops(const OpView& v) {
    const bool transposed = v.op.kind == OpKind::matmul && v.op.integer("transpose_a", 0) != 0;
    return twice(checked_multiply(v.elements(v.output(0)), v.dim(v.input(0), transposed ? -2 : -1)));
}

std::int64_t attention_flops(const OpView& v) {  // q·kᵀ and p·v; softmax is counted like its own operator
    const Tensor* q = v.input(0);
    const Tensor* k = v.input(1);
    const std::int64_t scores = checked_multiply(v.elements(q) / std::max<std::int64_t>(1, v.dim(q, -1)), v.dim(k, -2));
    const AttentionWidths widths = attention_widths(v.graph, v.op, v.bound);
    const std::int64_t per_score = checked_add(checked_add(widths.key, widths.value), 2);
    return twice(checked_multiply(scores, per_score));
}

/// Each step of each layer and direction multiplies input and state by the weights of its gates.
std::int64_t recurrent_flops(const OpView& v) {
    const RecurrentDimensions d = recurrent_dimensions(v.graph, v.op, v.bound);
    const std::int64_t output_width = checked_multiply(d.hidden, d.directions);
    const auto layer = [&](std::int64_t width) {
        return checked_multiply(checked_multiply(d.gates, output_width), checked_add(width, d.hidden));
    };
    const std::int64_t macs = checked_add(layer(d.input), checked_multiply(d.layers - 1, layer(output_width)));
    return twice(checked_multiply(macs, checked_multiply(d.steps, d.batch)));
}

template <int per_element>
std::int64_t per_output(const OpView& v) {
    return checked_multiply(per_element, v.elements(v.output(0)));
}

/// An operator without a rule that takes a weight and an activation is assumed to multiply them:
/// each result meets one slice of the weight. Without this a network would seem modelled while most of its work is not.
std::int64_t custom_flops(const OpView& v) {
    const std::int64_t results = v.elements(v.output(0));
    bool activates = false;
    std::int64_t multiplied = 0;
    for (std::size_t i = 0; i < v.op.inputs.size(); ++i) {
        const Tensor* tensor = v.input(i);
        if (!tensor || !tensor->known_shape || !is_float(tensor->dtype)) continue;
        if (tensor->role == TensorRole::weight && tensor->shape.size() > 1) {
            multiplied = checked_add(multiplied, v.slice_elements(tensor));
        } else {
            activates = activates || tensor->role != TensorRole::weight;
        }
    }
    return activates && multiplied > 0 ? twice(checked_multiply(results, multiplied)) : results;
}

std::int64_t per_input(const OpView& v) {
    return v.elements(v.input(0));
}

std::int64_t pool_flops(const OpView& v) {
    std::int64_t window = 1;
    for (const std::int64_t k : v.op.integers("kernel")) window = checked_multiply(window, k);
    return checked_multiply(window, v.elements(v.output(0)));
}

/// 5 n log2 n of each transform of n points, the usual count of the Cooley-Tukey algorithm.
std::int64_t fft_flops(const OpView& v) {
    const bool pairs = v.op.integer("pairs", 0) != 0;
    const auto points = [&](const Tensor* t) {
        return v.elements(t) / (pairs ? std::max<std::int64_t>(1, v.dim(t, -1)) : 1);
    };
    std::int64_t n = v.op.integer("frame", 0), all = std::max(points(v.input(0)), points(v.output(0)));
    if (n > 0) {
        all = checked_multiply(points(v.output(0)) / v.op.integer("bins", n), n);
    } else {
        const std::array<std::int64_t, 1> last{pairs ? -2 : -1};
        const std::span<const std::int64_t> axes = v.op.integers("axes");
        n = 1;
        for (const std::int64_t axis : axes.empty() ? std::span<const std::int64_t>(last) : axes)
            n = checked_multiply(
                n, std::max(v.dim(v.input(0), static_cast<int>(axis)), v.dim(v.output(0), static_cast<int>(axis))));
    }
    std::int64_t log2 = 0;
    while (log2 < 62 && (std::int64_t{1} << log2) < n) ++log2;
    return checked_multiply(5 * log2, all);
}

/// Which operands a kernel of the operator touches in memory.
enum class Traffic : std::uint8_t {
    none,        ///< a view or host work
    operands,    ///< all inputs once, all outputs once
    lookup,      ///< the rows that are looked up, the indices, the output
    write_only,  ///< the output
    update,      ///< values written into the first operands, read and written once, and their indices
};

using Flops = std::int64_t(const OpView&);

struct WorkRule {
    Flops* flops;
    Traffic traffic;
};

const WorkRule& rule_of(OpKind kind) {
    static const std::vector<WorkRule> rules = [] {
        const auto flops =
            by_name<Flops*>(FTAX_NAMED(no_flops, conv_flops, conv_transpose_flops, contraction_flops, attention_flops,
                                       recurrent_flops, pool_flops, fft_flops, custom_flops, per_input, per_output<1>,
                                       per_output<2>, per_output<4>, per_output<5>, per_output<8>));
        std::vector<WorkRule> result(op_kind_count);
        for_each_data_row(embedded_text("data/operator_kinds.tsv"), [&](DataRow row) {
            WorkRule& rule = result[static_cast<std::size_t>(op_kind_from_name(row.text()).value())];
            rule.flops = flops.at(row.text());
            rule.traffic = row.choice<Traffic>("none operands lookup write_only update");
        });
        return result;
    }();
    return rules[static_cast<std::size_t>(kind)];
}

std::int64_t read_bytes(const OpView& v, Traffic traffic) {
    std::int64_t total = 0;
    if (traffic == Traffic::none || traffic == Traffic::write_only) return total;
    const bool in_place = traffic == Traffic::update && !scattered(v.graph, v.op).empty();
    const std::size_t untouched = in_place ? scatter_bases(v.op) : 0;
    for (std::size_t i = 0; i < v.op.inputs.size(); ++i) {
        const Tensor* tensor = v.input(i);
        if (!tensor || i < untouched) continue;
        std::int64_t bytes = v.bytes(tensor);
        if (traffic == Traffic::lookup && i == 0) {
            const std::int64_t read = looked_up_elements(v.graph, v.op, v.bound);
            const std::int64_t written = std::max<std::int64_t>(1, v.elements(v.output(0)));
            bytes = std::min(bytes, checked_multiply(v.bytes(v.output(0)), read) / written);
        }
        total = checked_add(total, bytes);
    }
    return total;
}

/// Bytes that a scatter writes: as many elements of the result's type as its updates have.
std::int64_t update_bytes(const OpView& v) {
    const std::vector<TensorId> updates = scattered(v.graph, v.op);
    if (updates.empty()) return v.bytes(v.output(0));
    std::int64_t bits = 0;
    for (const TensorId update : updates)
        bits = checked_add(bits, checked_multiply(v.elements(&v.graph.tensors[update]), bits_of(v.output(0)->dtype)));
    return checked_add(bits, 7) / 8;
}

bool is_of_unknown_shape(const Graph& graph, const Op& op) {
    const auto shapeless = [&](TensorId id) { return id != no_tensor && !graph.tensors[id].known_shape; };
    return std::ranges::any_of(op.inputs, shapeless) || std::ranges::any_of(op.outputs, shapeless);
}

}  // namespace

Work work_of(const Graph& graph, const Op& op, const BoundShapes& bound) {
    const WorkRule& rule = rule_of(op.kind);
    const OpView view{graph, op, bound};
    try {
        Work work{rule.flops(view), read_bytes(view, rule.traffic), 0};
        if (rule.traffic == Traffic::none) return work;
        if (rule.traffic == Traffic::update) {
            work.write_bytes = update_bytes(view);
            return work;
        }
        for (std::size_t i = 0; i < op.outputs.size(); ++i)
            work.write_bytes = checked_add(work.write_bytes, view.bytes(view.output(i)));
        return work;
    } catch (const Error& error) {
        throw_error(error.code(), "{}: operator {} ({}): {}", graph.name, op.name, op.source, error.what());
    }
}

std::vector<bool> guessed_operators(const Graph& graph) {
    return mapped(graph.ops, [&](const Op& op) { return op.kind == OpKind::custom || is_of_unknown_shape(graph, op); });
}

double modelled_flops(const Graph& graph, const BoundShapes& bound, const std::vector<bool>& guessed) {
    // How often a layer of unknown rows multiplies by its weights is unknown: its weights count as not modelled.
    double modelled = 0, all = 0, modelled_weights = 0, weights = 0;
    for (OpId id = 0; id < graph.ops.size(); ++id) {
        const OpView view{graph, graph.ops[id], bound};
        const auto flops = static_cast<double>(work_of(graph, view.op, bound).flops);
        double multiplied = 0;
        const bool multiplies = guessed[id] ? is_of_unknown_shape(graph, view.op) : flops > 0;
        for (std::size_t i = 0; i < view.op.inputs.size() && multiplies; ++i) {
            const Tensor* tensor = view.input(i);
            if (tensor && tensor->role == TensorRole::weight && tensor->shape.size() > 1)
                multiplied += static_cast<double>(view.elements(tensor));
        }
        all += flops;
        weights += multiplied;
        if (guessed[id]) continue;
        modelled += flops;
        modelled_weights += multiplied;
    }
    if (all + weights > 0) return std::min(all > 0 ? modelled / all : 1, weights > 0 ? modelled_weights / weights : 1);
    return static_cast<double>(std::ranges::count(guessed, false)) /
           static_cast<double>(std::max<std::size_t>(1, guessed.size()));
}

std::vector<std::string> warnings_of_guesses(const Graph& graph, const std::vector<bool>& guessed) {
    const auto guesses = std::ranges::count(guessed, true);
    const auto custom = std::ranges::count_if(graph.ops, [](const Op& op) { return op.kind == OpKind::custom; });
    std::vector<std::string> warnings;
    if (custom > 0)
        warnings.push_back(
            fmt::format("{} of {} operators have no rule and are modelled as memory-bound", custom, graph.ops.size()));
    if (guesses > custom)
        warnings.push_back(
            fmt::format("{} of {} operators have tensors of unknown shape, whose work and bytes are not counted",
                        guesses - custom, graph.ops.size()));
    return warnings;
}

Work total_work(const Graph& graph, const BoundShapes& bound) {
    Work total;
    for (const Op& op : graph.ops) {
        const Work work = work_of(graph, op, bound);
        total.flops = checked_add(total.flops, work.flops);
        total.read_bytes = checked_add(total.read_bytes, work.read_bytes);
        total.write_bytes = checked_add(total.write_bytes, work.write_bytes);
    }
    return total;
}

}  // namespace ftax
