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

/// Removes operators of fixed shape that do not depend on any input; their results become weights.
/// Source: ONNX Runtime, ConstantFolding.
void fold_constants(Graph& graph);
/// Removes operators that return their input: contiguous, clone, dropout, full slices, concatenations of one tensor.
/// Source: torch.onnx, which writes no node for contiguous; ONNX Runtime, EliminateIdentity, EliminateDropout,
/// EliminateSlice, ExpandElimination.
void remove_copies(Graph& graph);
/// Expands torch.chunk to one slice per piece and torch.roll to slices and concatenations.
/// Source: torch.onnx, symbolic_opset9.py (roll) and prim::ConstantChunk; torch_lib, core.py (aten_roll, aten_chunk).
void write_out_movement(Graph& graph);
/// Recognises layers in their decomposed form: GELU, LayerNorm, products with a weight and a sum.
/// Source: ONNX Runtime, GeluFusion, FastGeluFusion, LayerNormFusion, MatMulAddFusion.
void recognise_layers(Graph& graph);
/// Expands scaled_dot_product_attention to product, softmax and product as exporters do, with both factors scaled
/// first. Attention operators of ONNX files are kept. Source: torch.onnx, symbolic_opset14.py and torch_lib.
void write_out_attention(Graph& graph);
/// Expands swish and hard swish to a sigmoid and a product.
/// Source: torch.onnx, symbolic_opset9.py (silu); ONNX, HardSwish, a function that ONNX Runtime 1.12 expands on CUDA.
void write_out_gates(Graph& graph);
/// Expands a group norm to an instance norm over its groups and a scale and shift of the channels.
/// Source: torch.onnx, symbolic_opset9.py and torch_lib (group_norm).
void write_out_group_norm(Graph& graph);
/// Expands a layer norm to two means and the elementwise operators around them, each of which is a kernel or part of
/// one. Source: torch.onnx, symbolic_opset9.py (layer_norm); opset 17 is the first with LayerNormalization.
void write_out_layer_norm(Graph& graph);

/// Folds a batch norm into the convolution or linear layer whose only reader it is; a bias remains.
/// Source: ONNX Runtime, ConvBNFusion; TensorRT, layer fusion "convolution and scale".
void fold_batch_norm(Graph& graph);

/// Returns true if both operators belong to one com.microsoft node of an ONNX file.
[[nodiscard]] bool are_one_node(const Op& a, const Op& b);
/// Merges consecutive data movement within a com.microsoft node into one kernel: splitting packed queries, keys and
/// values and moving their heads to the front. Source: ONNX Runtime, contrib_ops/cuda/bert (LaunchTransposeQkv,
/// AddBiasTransposeQKV, LaunchTransCtx).
void join_movement_of_nodes(Graph& graph);

/// Fuses a following relu, and a residual addition in between, into the epilogue of a convolution.
/// Source: ONNX Runtime, ConvActivationFusion and ConvAddActivationFusion (FusedConv supports relu on CUDA).
void fuse_conv_relu(Graph& graph);
/// The same for any clipping activation, and for linear layers. Sigmoid and swish stay separate kernels.
/// Source: TensorRT 8, layer fusions "convolution and ReLU" and "convolution and clip"; framework_tax.csv
/// torch-tensorrt: with fused swish, efficientnet is predicted 25 % too fast on every card.
void fuse_epilogue(Graph& graph);

/// Fuses two or more consecutive elementwise operators; intermediate results cause no traffic.
/// Source: TensorRT, pointwise fusion.
void fuse_pointwise(Graph& graph);
/// The same for elementwise operators and batch norms.
/// Source: TorchScript's NVFuser (PyTorch 1.12), which leaves single operators alone.
void fuse_pointwise_and_batch_norm(Graph& graph);

/// Fuses a clipping activation into a batch norm that was not folded into a convolution.
/// Source: TensorRT, layer fusion "scale and activation".
void fuse_scale_and_activation(Graph& graph);
/// Removes concatenations: each part is written directly into the joined tensor. A tensor has only one location, so
/// parts of several concatenations, inputs and pieces of a split are copied.
/// Source: TensorRT's build log, "Eliminating concatenation", last one first, "Retargeting … to …" and "Generating copy
/// for … because input is not movable".
void eliminate_concatenations(Graph& graph);

/// Lets attention read latent vectors in the cache (latent_attribute) instead of keys and values expanded from them for
/// all tokens in every step. The layer's weights multiply new queries and results instead, with the same operations and
/// traffic as expanding only the new tokens.
/// Source: DeepSeek-V2, arXiv 2405.04434, section 2.1.2; vLLM, MLACommonImpl (W_UK, W_UV).
void absorb_latent_expansion(Graph& graph);
/// Returns the graph of the passes after the first, in which values that depend only on non-text data (an audio
/// encoder, and the keys and values computed from its result) are cached inputs. nullopt if there are none. Source:
/// transformers, EncoderDecoderCache.
[[nodiscard]] std::optional<Graph> without_encoder(const Graph& graph);
/// Lets attention write new keys and values into the pages of a cache instead of concatenating them with the old ones.
/// Source: vLLM, reshape_and_cache; TensorRT-LLM, paged KV cache of the attention plugin.
void append_to_pages(Graph& graph);
/// Fuses the operators between two contractions into one kernel: residual sum and norm, rotary embedding, activation
/// and product, the choice of experts. Views are free.
/// Source: vLLM, csrc (fused_add_rms_norm, rotary_embedding, silu_and_mul, topk_softmax); Inductor's scheduler.
void fuse_between_contractions(Graph& graph);

/// Merges decomposed attention into one operator: products, softmax, any scales, caps, masks, biases and sinks, and the
/// repetition of keys and values for query heads.
/// Source: TensorRT, CustomQKVToContextPluginDynamic, and Myelin's multi-head attention from 8.6 on; vLLM,
/// FlashAttention with softcap, ALiBi slopes and sinks.
using ftax::recognise_attention;
/// Merges layers with the same input (queries, keys and values; gate and up) into one; its readers take slices. Source:
/// TensorRT, demo/BERT (one product for all three); Myelin, horizontal fusion; vLLM, QKVParallelLinear and
/// MergedColumnParallelLinear.
void merge_sibling_layers(Graph& graph);
/// Lets products and attention read and write transposed, sliced and expanded data in place. Source: layers of TensorRT
/// engines; none moves data in a BERT.
void fold_movement(Graph& graph);
/// Fuses a following GELU or ReLU into a linear layer. Source: TensorRT, demo/BERT: with a separate kernel the error on
/// the tables of 8.6 and later is 8 %.
void fuse_activation(Graph& graph);
/// Fuses a residual addition into the norm that reads it, which also writes the sum if it has other readers.
/// Source: TensorRT, CustomSkipLayerNormPluginDynamic; Myelin's layers of residual and norm.
void fuse_residual_layer_norm(Graph& graph);
/// The same for layer norms and sums without other readers. Source: ONNX Runtime, SkipLayerNormFusion.
void fuse_skip_layer_norm(Graph& graph);

/// Folds QuantizeLinear/DequantizeLinear pairs into adjacent operators: products of two quantised operands run in the
/// narrow type, and results read only by quantised operators are written in it, also through data movement and maximum;
/// the remaining quantisations are separate kernels. A full-precision product cannot write narrow values, and a product
/// with a quantised result has no further epilogue. Source: TensorRT, developer guide, "Explicit Quantization" (Q/DQ
/// fusions, propagation, layer placement).
void fold_quantization(Graph& graph);

/// Renames operators to TensorRT's layers (IEngineInspector, trtexec --dumpProfile).
void name_engine_layers(Graph& graph);

/// Appends the lookup tables of `op` to the pairs of `lookups_attribute`.
void append_lookups(Graph& graph, const Op& op, std::vector<std::int64_t>& pairs);

/// Fuses pointwise operators, norms, softmax and reductions into their readers, through views, unless another kernel
/// must run in between. Leftovers of library calls (a convolution's bias) are fused too. A strided reduction, or one
/// with too few results to fill a card, runs before operators that read its operand again.
/// Source: torch/_inductor/scheduler.py (can_fuse_vertical), lowering.py (pointwise operators are inlined),
/// codegen/simd.py (can_fuse), choices.py (reduction_split_factor).
void fuse_into_readers(Graph& graph);
/// Leaves 3-D maximum pooling to ATen, as Inductor does before PyTorch 2.8 (torch/_inductor/lowering.py).
void keep_maxima_of_volumes(Graph& graph);
/// Returns true if a run modifies tensors of the model: a batch norm in training updates its running mean, variance and
/// count.
[[nodiscard]] bool updates_buffers(const Graph& graph);
/// Removes operators with unread results, except in-place ones, as AOTAutograd does.
void erase_unread(Graph& graph);
/// Adds the copies into the three buffers of a training batch norm that a functional graph needs.
/// Source: torch/_functorch/_aot_autograd (functionalization: copy_ of mutated inputs).
void write_out_updates(Graph& graph);
/// Returns true if Inductor keeps activations in NHWC, decided by weighing the convolutions' gain from the layout.
/// Source: torch/_inductor/graph.py, decide_layout_opt (inference).
[[nodiscard]] bool gains_from_channels_last(const Graph& graph);
/// Copies NCHW inputs to the layout of the convolutions, and results of convolutions back.
/// Source: torch/_inductor/graph.py, which keeps the strides of inputs and outputs (keep_output_stride).
void convert_layouts_at_edges(Graph& graph);

}  // namespace ftax::rewrites
