#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/graph.hpp"

namespace ftax {

/// Says which input or output `op` lacks of those that its kind cannot do without; nullopt where it has them all.
[[nodiscard]] std::optional<std::string> missing_operand(const Op& op);

/// Throws Error{model} naming the first operator that lacks an operand, whose perm (transpose) or axes (slice, roll)
/// its input does not have, or that convolves what has no channels.
void check_operands(const Graph& graph);

/// Whether the operator only tells where its result lies: a framework that works with strides launches nothing for it.
[[nodiscard]] bool is_view(const Op& op);
/// The tensor that a chain of views up to this one begins with; itself where it is no view.
[[nodiscard]] TensorId viewed(const Graph& graph, TensorId tensor);

/// Whether a mask of scores has a row for each query, not one for all, as causal masks do.
[[nodiscard]] bool differs_between_queries(const Graph& graph, TensorId mask);

/// Elements of its table, input 0, that an embedding or a gather reads: a row for each index, of which an embedding bag
/// sums several to one of its results.
[[nodiscard]] std::int64_t looked_up_elements(const Graph& graph, const Op& lookup, const BoundShapes& bound);

/// How many of its first inputs a scatter (index_copy, slice_scatter …) writes into: one, or its attribute `bases`.
[[nodiscard]] std::size_t scatter_bases(const Op& scatter);
/// The operands of a scatter whose elements it writes into others, one for each that it writes into: its last. Empty
/// where it makes a new tensor, or writes a number everywhere.
[[nodiscard]] std::vector<TensorId> scattered(const Graph& graph, const Op& scatter);

/// Weights that a run writes into: the caches of fixed length of a step of decoding, which exporters keep as buffers.
[[nodiscard]] std::vector<bool> written_weights(const Graph& graph);

/// Attribute of an attention over a cache of latent vectors (inputs 1 and 2: [batch, 1, tokens, rank] and the rotated
/// part of the keys) that all heads share. A single query is multiplied by the weights that expand them instead, so
/// that it meets the latent vectors themselves; a prompt meets keys and values of each head, expanded from its own
/// tokens.
inline constexpr std::string_view latent_attribute = "latent";

/// Attribute of an attention, or of the last product of one that is spelled out: the tokens that a query sees, itself
/// among them; 0: all before it. Libraries that serve leave out what is beyond; PyTorch's masks only hide it.
inline constexpr const char* window_attribute = "window";

/// Widths of an attention's vectors in its operands and kernels.
struct AttentionWidths {
    std::int64_t key = 1, value = 1;  ///< of a score's two products
    bool latent = false;              ///< the values are a part of the keys, and all heads read the same
};
/// Source: DeepSeek-V2, arXiv 2405.04434, section 2.1.2 ("absorbed"); vLLM, MLACommonImpl: prompts are expanded.
[[nodiscard]] AttentionWidths attention_widths(const Graph& graph, const Op& attention, const BoundShapes& bound);

/// What a recurrent operator works on.
struct RecurrentDimensions {
    std::int64_t steps = 1, batch = 1;
    std::int64_t input = 1;   ///< values of a step of one sequence; `hidden * directions` from the second layer on
    std::int64_t hidden = 1;  ///< values of its state, in each direction
    std::int64_t gates = 1;   ///< values of a step before they become one of the state: 4 in an LSTM, 3 in a GRU
    std::int64_t layers = 1, directions = 1;
};
/// Reads them from x[steps,batch,input] ({batch_first}: x[batch,steps,input]), from packed sequences x[tokens,input],
/// sizes of the batch at each step, or from x[batch,input] of a single step. What is not known counts as 1.
[[nodiscard]] RecurrentDimensions recurrent_dimensions(const Graph& graph, const Op& recurrent,
                                                       const BoundShapes& bound);

/// Whether a tensor of that name holds keys or values of earlier tokens: as config.json models, optimum's ONNX files
/// ("past_key_values.0.key") and exported caches of transformers ("key_cache_0", "layers_0_keys") call them.
[[nodiscard]] bool is_cache_name(std::string_view name);

}  // namespace ftax
