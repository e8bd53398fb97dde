#pragma once

#include <optional>
#include <string_view>

#include "ftax/graph.hpp"
#include "graphs/ir/canonical/canonical.hpp"

/// Graph passes of the frameworks' optimisers; each framework has a list of them (predictors/frameworks/).
namespace ftax::rewrites {

/// Value of the attribute `function` of a pointwise operator that represents several fused ones.
inline constexpr std::string_view fused_function = "fused";
/// Attribute of a contraction with an epilogue (bias, sum, activation): its last function.
inline constexpr std::string_view epilogue = "epilogue";
/// Value of `epilogue` of a product that quantises its result; later operators are separate kernels.
inline constexpr std::string_view quantized_result = "quantize";
/// Attribute of a contraction whose operands the file quantises: precision of the product (int8, fp8).
inline constexpr std::string_view operands = "operands";
/// Attribute of an attention that also writes new keys and values (its inputs from the fifth on) into pages.
inline constexpr std::string_view paged = "paged";
/// Attribute of a fused operator for which libraries have a kernel with one block per token: "norm" or "gated".
inline constexpr std::string_view token_kernel = "token_kernel";

/// Attribute of a fused operator: the number of values that its reductions combine.
inline constexpr std::string_view reductions = "reductions";
/// Attribute of a fused operator: a tensor whose elements Inductor before 2.8 reads one by one from memory sectors.
inline constexpr std::string_view strided_tensor = "strided";
/// Attribute of a fused operator in a compiler-generated kernel, which casts its inputs and outputs.
inline constexpr std::string_view generated = "generated";
/// Attribute of such an operator with a parameter as an ordinary operand: under autocast its results are f32.
inline constexpr std::string_view parameter_operand = "parameter_operand";
/// Attribute of such an operator: outputs stored in f32 at any precision.
inline constexpr std::string_view full_outputs = "full_outputs";

/// The passes, each described at its code.
using Rewrite = void(Graph&);
Rewrite fold_constants, remove_copies, write_out_movement, recognise_layers, write_out_attention, write_out_gates,
    write_out_group_norm, write_out_layer_norm, fold_batch_norm, join_movement_of_nodes, fuse_conv_relu, fuse_epilogue,
    fuse_pointwise, fuse_pointwise_and_batch_norm, fuse_scale_and_activation, eliminate_concatenations,
    absorb_latent_expansion, append_to_pages, defer_activations, fuse_between_contractions, merge_sibling_layers,
    fold_movement, fuse_activation, fuse_residual_layer_norm, fuse_skip_layer_norm, fold_quantization,
    name_engine_layers, fuse_into_readers, keep_maxima_of_volumes, erase_unread, write_out_updates,
    convert_layouts_at_edges;

/// Returns true if both operators belong to one com.microsoft node of an ONNX file.
[[nodiscard]] bool are_one_node(const Op& a, const Op& b);

/// Returns the graph of the passes after the first, in which values that depend only on non-text data (an audio
/// encoder, and the keys and values computed from its result) are cached inputs. nullopt if there are none. Source:
/// transformers, EncoderDecoderCache.
[[nodiscard]] std::optional<Graph> without_encoder(const Graph& graph);

/// Merges decomposed attention into one operator: products, softmax, any scales, caps, masks, biases and sinks, and the
/// repetition of keys and values for query heads.
/// Source: TensorRT, CustomQKVToContextPluginDynamic, and Myelin's multi-head attention from 8.6 on; vLLM,
/// FlashAttention with softcap, ALiBi slopes and sinks.
using ftax::recognise_attention;

/// Appends the lookup tables of `op` to the pairs of `lookups_attribute`.
void append_lookups(Graph& graph, const Op& op, std::vector<std::int64_t>& pairs);

/// Returns true if a run modifies tensors of the model: a batch norm in training updates its running statistics.
[[nodiscard]] bool updates_buffers(const Graph& graph);
/// Returns true if Inductor keeps activations in NHWC, decided by weighing the convolutions' gain from the layout.
/// Source: torch/_inductor/graph.py, decide_layout_opt (inference).
[[nodiscard]] bool gains_from_channels_last(const Graph& graph);

}  // namespace ftax::rewrites
