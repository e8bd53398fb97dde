#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

void assign_producers(Graph& graph);
inline TensorId append(Graph& graph, Tensor tensor) {
    graph.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(graph.tensors.size() - 1);
}
/// The operands that are there, for a range-for (clang 14 cannot compile libstdc++'s std::views::filter).
struct present {
    using Iterator = std::vector<TensorId>::const_iterator;
    explicit present(const std::vector<TensorId>& operands) : next(operands.begin()), last(operands.end()) { skip(); }
    [[nodiscard]] present begin() const { return *this; }
    [[nodiscard]] Iterator end() const { return last; }
    bool operator!=(Iterator end) const { return next != end; }
    TensorId operator*() const { return *next; }
    void operator++() { ++next, skip(); }
    void skip() {
        next = std::find_if(next, last, [](TensorId id) { return id != no_tensor; });
    }
    Iterator next, last;
};
/// Returns true for an elementwise operator with one of these functions.
template <std::size_t... sizes>
[[nodiscard]] bool computes(const Op& op, const char (&... functions)[sizes]) {
    if (op.kind != OpKind::pointwise) return false;
    const std::string_view function = op.text("function");
    return ((function == std::string_view(functions, sizes - 1)) || ...);
}

/// An operand that an operator may lack; nullptr where it does.
[[nodiscard]] const Tensor* tensor_at(const Graph& graph, const std::vector<TensorId>& operands, std::size_t i);

/// Returns a required input or output that `op` lacks; nullopt if it is complete.
[[nodiscard]] std::optional<std::string> missing_operand(const Op& op);

/// Throws Error{model} naming the first operator that lacks an operand, whose perm (transpose) or axes (slice, roll)
/// its input does not have, or that convolves a tensor without channels.
void check_operands(const Graph& graph);

/// Fills graph.size_checks with pairs of sizes that an operator requires to be equal, but that are different symbolic
/// expressions: reshapes to constants of the exported size, operands that must broadcast.
void find_size_checks(Graph& graph);

/// Returns true for views: a framework with strides launches no kernel for them.
[[nodiscard]] bool is_view(const Op& op);
/// Returns the base of a chain of views; the tensor itself if it is not a view.
[[nodiscard]] TensorId viewed(const Graph& graph, TensorId tensor);

/// Returns true if a mask has a row per query, as causal masks do, not one for all queries.
[[nodiscard]] bool differs_between_queries(const Graph& graph, TensorId mask);

/// Returns the elements that an embedding or gather reads from its table, input 0: a row per index.
[[nodiscard]] std::int64_t looked_up_elements(const Graph& graph, const Op& lookup, const BoundShapes& bound);

/// Returns the number of leading inputs that a scatter (index_copy, slice_scatter …) writes into: one, or `bases`.
[[nodiscard]] std::size_t scatter_bases(const Op& scatter);
/// Returns the source operands of a scatter, one per destination: its last inputs. Empty for a new tensor or a scalar.
[[nodiscard]] std::vector<TensorId> scattered(const Graph& graph, const Op& scatter);

/// Returns weights that a run modifies: caches of fixed length of a decoding step, which exporters store as buffers.
[[nodiscard]] std::vector<bool> written_weights(const Graph& graph);

/// Attribute of an attention over a cache of latent vectors (inputs 1 and 2: [batch, 1, tokens, rank] and the rotated
/// part of the keys) shared by all heads. A single query is multiplied by the expanding weights instead, so that it
/// attends to the latent vectors directly; a prompt uses keys and values of each head, expanded from its own tokens.
/// 2: beyond the window, an indexer selects those of each query, and prompts attend to them directly as well.
inline constexpr std::string_view latent_attribute = "latent";

/// Attribute of an attention, or of the last product of a decomposed one: size of the window, including the query's
/// token; 0: all previous tokens. Serving libraries skip tokens outside; PyTorch only masks them.
inline constexpr const char* window_attribute = "window";

/// Attribute beside a window: most of the keys that stand for several tokens each, which are seen as well.
inline constexpr const char* entries_attribute = "entries";

/// Attribute of an attention that only scores keys, for all heads together, and selects the best: how many of them.
inline constexpr const char* selects_attribute = "selects";

/// Attribute of a fused operator with lookups: pairs of a table and a tensor of the size that is read from it.
inline constexpr std::string_view lookups_attribute = "lookups";

/// Attribute of a layer with quantised weights in the checkpoint: name of the precision (ftax/precision.hpp).
inline constexpr std::string_view weights_attribute = "weights";

/// Attribute of a layer that the checkpoint has in a precision of its own beside narrower experts: its name.
inline constexpr std::string_view rest_attribute = "rest";

/// Attribute of the layer that computes logits: tokens are sampled without top-k and top-p.
inline constexpr std::string_view samples_all_attribute = "samples_all";

/// Returns the half-precision type of a model's weights; f32 if there is none.
[[nodiscard]] DType half_type_of_weights(const Graph& graph);

/// Widths of an attention's vectors in its operands and kernels.
struct AttentionWidths {
    std::int64_t key = 1, value = 1;  ///< widths of the two products
    bool latent = false;              ///< values are part of the keys, shared by all heads
};
/// Source: DeepSeek-V2, arXiv 2405.04434, section 2.1.2 ("absorbed"); vLLM, MLACommonImpl: prompts are expanded.
[[nodiscard]] AttentionWidths attention_widths(const Graph& graph, const Op& attention, const BoundShapes& bound);

struct RecurrentDimensions {
    std::int64_t steps = 1, batch = 1;
    std::int64_t input = 1;   ///< input values per step and sequence; `hidden * directions` from the second layer on
    std::int64_t hidden = 1;  ///< values of the state per direction
    std::int64_t gates = 1;   ///< gates per state value: 4 in an LSTM, 3 in a GRU
    std::int64_t layers = 1, directions = 1;
};
/// Reads them from x[steps,batch,input] ({batch_first}: x[batch,steps,input]), from packed sequences x[tokens,input],
/// sizes of the batch at each step, or from x[batch,input] of a single step. Unknown sizes count as 1.
[[nodiscard]] RecurrentDimensions recurrent_dimensions(const Graph& graph, const Op& recurrent,
                                                       const BoundShapes& bound);

/// Returns true for names of cached keys or values: as config.json models, optimum's ONNX files
/// ("past_key_values.0.key") and exported caches of transformers ("key_cache_0", "layers_0_keys") call them.
[[nodiscard]] bool is_cache_name(std::string_view name);
/// Returns true for names of a layer's state of fixed size, as graphs/config/blocks.txt calls them.
[[nodiscard]] inline bool is_state_name(std::string_view name) {
    return name.ends_with("state");
}

}  // namespace ftax
