#pragma once

#include <optional>
#include <string_view>

#include "ftax/graph.hpp"

/// Passes over a graph that the optimisers of frameworks make; a framework is a list of them (predictors/frameworks/).
namespace ftax::rewrites {

/// Value of the attribute `function` of a pointwise operator that stands for a run of fused ones.
inline constexpr std::string_view fused_function = "fused";
/// Attribute of a contraction that finishes its result itself (bias, sum, activation): the function it ends with.
inline constexpr std::string_view epilogue = "epilogue";
/// Value of `epilogue` where the product quantises its result: what follows is a kernel of its own.
inline constexpr std::string_view quantized_result = "quantize";
/// Attribute of a contraction whose operands a file quantises: the precision of the product (int8, fp8).
inline constexpr std::string_view operands = "operands";
/// Attribute of an attention that also writes the new keys and values, its inputs from the fifth on, into pages.
inline constexpr std::string_view paged = "paged";
/// Attribute of a fused operator that libraries have a kernel of one block per token for: "norm" or "gated".
inline constexpr std::string_view token_kernel = "token_kernel";

/// Attribute of a fused operator that looks values up: pairs of a table and a tensor as large as what is read of it.
inline constexpr std::string_view lookups = "lookups";
/// Attribute of a fused operator whose kernel a compiler generated: it casts what it reads and writes.
inline constexpr std::string_view generated = "generated";
/// Attribute of such an operator that takes a parameter as an operand like others: under autocast its results are f32.
inline constexpr std::string_view parameter_operand = "parameter_operand";
/// Attribute of such an operator: which of its outputs are stored in f32 whatever the precision.
inline constexpr std::string_view full_outputs = "full_outputs";

/// Removes what no input reaches and whose shape is fixed: its results become weights.
/// Source: ONNX Runtime, ConstantFolding.
void fold_constants(Graph& graph);
/// Removes what yields its input: contiguous, clone, dropout, the slice of all, the concatenation of one.
/// Source: torch.onnx, which writes no node for contiguous; ONNX Runtime, EliminateIdentity, EliminateDropout,
/// EliminateSlice, ExpandElimination.
void remove_copies(Graph& graph);
/// Writes torch.chunk as one slice per piece and torch.roll as slices and concatenations.
/// Source: torch.onnx, symbolic_opset9.py (roll) and prim::ConstantChunk; torch_lib, core.py (aten_roll, aten_chunk).
void write_out_movement(Graph& graph);
/// Layers that the optimiser recognises in what a model spells out: GELU, LayerNorm, products with a weight and a sum.
/// Source: ONNX Runtime, GeluFusion, FastGeluFusion, LayerNormFusion, MatMulAddFusion.
void recognise_layers(Graph& graph);
/// Writes scaled_dot_product_attention as the product, softmax and product that exporters make of it, both factors
/// scaled first. Attention operators of an ONNX file itself stay. Source: torch.onnx, symbolic_opset14.py and
/// torch_lib.
void write_out_attention(Graph& graph);
/// Writes swish and hard swish as the sigmoid and the product that run one after the other.
/// Source: torch.onnx, symbolic_opset9.py (silu); ONNX, HardSwish, a function that ONNX Runtime 1.12 expands on CUDA.
void write_out_gates(Graph& graph);
/// Writes a group norm as an instance norm of its groups and what scales and shifts the channels.
/// Source: torch.onnx, symbolic_opset9.py and torch_lib (group_norm).
void write_out_group_norm(Graph& graph);

/// Folds a batch norm into the convolution or linear layer that feeds it alone: a bias remains.
/// Source: ONNX Runtime, ConvBNFusion; TensorRT, layer fusion "convolution and scale".
void fold_batch_norm(Graph& graph);

/// Whether both operators are parts of one com.microsoft node of an ONNX file.
[[nodiscard]] bool are_one_node(const Op& a, const Op& b);
/// Makes one kernel of the operators of a com.microsoft node that move data one after the other: the pieces of packed
/// queries, keys and values with their heads in front. Source: ONNX Runtime, contrib_ops/cuda/bert (LaunchTransposeQkv,
/// AddBiasTransposeQKV, LaunchTransCtx).
void join_movement_of_nodes(Graph& graph);

/// Makes one transposition of two that follow each other. Source: ONNX Runtime, transpose_optimization.
void merge_transposes(Graph& graph);

/// Lets a convolution apply the relu behind it, and the residual addition in between, in its epilogue.
/// Source: ONNX Runtime, ConvActivationFusion and ConvAddActivationFusion (FusedConv knows relu on CUDA).
void fuse_conv_relu(Graph& graph);
/// The same for any activation that only clips, and for linear layers. Sigmoid and swish stay kernels of their own.
/// Source: TensorRT 8, layer fusions "convolution and ReLU" and "convolution and clip"; framework_tax.csv
/// torch-tensorrt: with swish fused efficientnet comes out 25 % too fast on every card.
void fuse_epilogue(Graph& graph);

/// Joins a residual addition to the layer norm that alone reads it. Source: ONNX Runtime, SkipLayerNormFusion.
void fuse_skip_layer_norm(Graph& graph);

/// Joins runs of two or more elementwise operators that follow one another: what passes inside causes no traffic.
/// Source: TensorRT, pointwise fusion.
void fuse_pointwise(Graph& graph);
/// Runs of elementwise operators and batch norms.
/// Source: TorchScript's NVFuser (PyTorch 1.12), which leaves single operators alone.
void fuse_pointwise_and_batch_norm(Graph& graph);

/// Lets a batch norm that no convolution took in clip its result itself.
/// Source: TensorRT, layer fusion "scale and activation".
void fuse_scale_and_activation(Graph& graph);
/// Removes concatenations: each part is written where the joined tensor lies. A part can lie in one place only: those
/// of several concatenations, inputs and pieces of a split are copied into the others.
/// Source: TensorRT's build log, "Eliminating concatenation", last one first, "Retargeting … to …" and "Generating copy
/// for … because input is not movable".
void eliminate_concatenations(Graph& graph);

/// Lets attention read latent vectors in the cache (latent_attribute) instead of keys and values that a layer expands
/// from them for all tokens in every step: the layer's weights multiply new queries and results instead, which takes as
/// many operations, and reads as much, as expanding the new tokens alone.
/// Source: DeepSeek-V2, arXiv 2405.04434, section 2.1.2; vLLM, MLACommonImpl (W_UK, W_UV).
void absorb_latent_expansion(Graph& graph);
/// The graph of the passes behind the first: what depends on data that is no text alone (an encoder of audio, the keys
/// and values that a decoder's layers make of its result) has been computed, and is a cache. nullopt where there is no
/// such part. Source: transformers, EncoderDecoderCache.
[[nodiscard]] std::optional<Graph> without_encoder(const Graph& graph);
/// Lets attention write new keys and values into the pages of a cache instead of joining them to the old ones.
/// Source: vLLM, reshape_and_cache; TensorRT-LLM, paged KV cache of the attention plugin.
void append_to_pages(Graph& graph);
/// Joins what stands between two contractions to one kernel: residual sum and norm, rotation of queries and keys,
/// activation and product, the choice of experts. Views cost nothing.
/// Source: vLLM, csrc (fused_add_rms_norm, rotary_embedding, silu_and_mul, topk_softmax); Inductor's scheduler.
void fuse_between_contractions(Graph& graph);

/// Makes one operator of attention that a model spells out: products, softmax, whatever scales, caps, masks, biases and
/// sinks stand in between, and the copies of keys and values for each head of queries.
/// Source: TensorRT, CustomQKVToContextPluginDynamic, and Myelin's multi-head attention from 8.6 on; vLLM,
/// FlashAttention with softcap, ALiBi slopes and sinks.
void recognise_attention(Graph& graph);
/// Makes one layer of those that multiply the same input (queries, keys and values; gate and up); its readers take
/// pieces. Source: TensorRT, demo/BERT (one product for all three); Myelin, horizontal fusion; vLLM, QKVParallelLinear
/// and MergedColumnParallelLinear.
void merge_sibling_layers(Graph& graph);
/// Lets products and attention read and write transposed, sliced and expanded data where they lie.
/// Source: layers of TensorRT engines: none of a BERT moves data.
void fold_movement(Graph& graph);
/// Lets a linear layer apply the GELU or ReLU behind it.
/// Source: TensorRT, demo/BERT: as a kernel of its own the tables of 8.6 and later are missed by 8 %.
void fuse_activation(Graph& graph);
/// Joins a residual addition to the norm that reads it, which writes the sum as well where others read it too.
/// Source: TensorRT, CustomSkipLayerNormPluginDynamic; Myelin's layers of residual and norm.
void fuse_residual_layer_norm(Graph& graph);

/// Takes pairs of QuantizeLinear and DequantizeLinear into the operators around them: products of two quantised
/// operands run in the narrow type, results that only quantised operators read are written in it, through operators
/// that move values or take the greatest; what is left quantises in a kernel of its own. A product in full precision
/// cannot write narrow values, nor one whose result is quantised take in what follows. Source: TensorRT, developer
/// guide, "Explicit Quantization" (Q/DQ fusions, propagation, layer placement).
void fold_quantization(Graph& graph);

/// Gives operators the names of TensorRT's layers (IEngineInspector, trtexec --dumpProfile).
void name_engine_layers(Graph& graph);

/// Adds the tables that `op` looks up to the pairs of `lookups`.
void append_lookups(Graph& graph, const Op& op, std::vector<std::int64_t>& pairs);

/// Joins pointwise operators, norms, softmax and reductions with those that read them, through views, where no other
/// kernel has to run in between. What a library call leaves to do (a convolution's bias) joins too. A reduction whose
/// elements lie apart, or of too few results to fill a card, runs before what reads its operand again.
/// Source: torch/_inductor/scheduler.py (can_fuse_vertical), lowering.py (pointwise operators are inlined),
/// codegen/simd.py (can_fuse), choices.py (reduction_split_factor).
void fuse_into_readers(Graph& graph);
/// Whether a run changes tensors of the model: a batch norm in training its running mean, variance and count.
[[nodiscard]] bool updates_buffers(const Graph& graph);
/// Drops operators whose results are not read, but for those that write in place, as AOTAutograd does.
void erase_unread(Graph& graph);
/// Copies what a batch norm in training leaves in its three buffers there, as a graph without side effects has to.
/// Source: torch/_functorch/_aot_autograd (functionalization: copy_ of mutated inputs).
void write_out_updates(Graph& graph);
/// Whether Inductor keeps activations in NHWC: where weighing the convolutions by what the layout gains says so.
/// Source: torch/_inductor/graph.py, decide_layout_opt (inference).
[[nodiscard]] bool gains_from_channels_last(const Graph& graph);
/// Copies inputs that come as NCHW into the layout of the convolutions, and results of convolutions back.
/// Source: torch/_inductor/graph.py, which keeps the strides of inputs and outputs (keep_output_stride).
void convert_layouts_at_edges(Graph& graph);

}  // namespace ftax::rewrites
