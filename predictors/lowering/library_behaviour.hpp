#pragma once

#include <cstdint>
#include <string_view>

#include "ftax/predict.hpp"

/// What libraries do differently from version to version: rules read them by name, rows say when they hold.
namespace ftax {

/// Libraries with such rows; `none`: a framework without. Engines, after PyTorch, share LibraryVersions::engine.
enum class Library : std::uint8_t { cudnn, tensorrt, torch, none, onnxruntime, vllm, sglang, tensorrt_llm, llama_cpp };

/// What the libraries of a run do. False without a row of data/library_rules.tsv, so also for an unspecified PyTorch
/// (0).
struct LibraryBehaviour {
    bool cudnn7_heuristic = false;       ///< cuDNN chooses convolutions as before version 8
    bool older_blas = false;             ///< see kernels::GemmShape and ConvShape
    bool oldest_blas = false;            ///< see kernels::GemmShape
    bool cublas_lt_of_any_size = false;  ///< layers with a bias use cublasLt, whatever their dimensions
    bool fuses_activations = false;      ///< TensorRT: GELU is part of a product's kernel, from Turing on
    bool keeps_onnx_nodes = false;       ///< TensorRT: layers of ONNX files around attention and norms stay apart
    bool unlimited_workspace = false;    ///< ONNX Runtime: convolutions may copy tensors of any size to NHWC
    bool flash1 = false;                 ///< attention in half precision runs FlashAttention 1
    bool xformers = false;               ///< memory-efficient attention is xformers' own, not PyTorch's
    bool widens_attention = false;       ///< attention without a fused kernel computes 16-bit values in f32
    bool weights_in_place = false;       ///< torch.compile does not turn a module's weights into inputs
    bool vectorized_casts = false;       ///< casts to half precision move vectors
    bool strided_reads = false;          ///< Inductor reads a fused operator's strided tensor one by one
    bool volumes_to_aten = false;        ///< Inductor leaves 3-D maximum pooling to ATen
    bool concatenates_by_part = false;   ///< tensors of more than four dimensions are copied part by part
    bool newest_blas = false;            ///< see kernels::GemmShape
    bool cudnn_attention = false;        ///< attention in half precision prefers cuDNN's kernel on Hopper and Blackwell
    bool sums_losses_by_blocks = false;  ///< eight warps sum the losses of all rows, not one
    bool sums_by_nccl = false;           ///< NCCL sums over cards, not kernels of the engine's own
    bool captures_decoding = false;      ///< decoding steps of one token per sequence are one CUDA graph
    bool captures_pieces = false;        ///< small steps with prompts are CUDA graphs between attention operators
    bool mixes_phases = false;           ///< prompts and decoding share a step
    bool chunks_prompts = false;         ///< prompts are split over steps
    bool schedules_ahead = false;        ///< the host schedules step n + 1 while the device computes step n
    bool sorts_logits = false;           ///< the sampler sorts the logits for top-k and top-p
    bool sorts_experts = false;       ///< experts get their tokens by fewer kernels than MixtureParameters::floor_s has
    bool pads_experts = false;        ///< experts with block scales compute whole tiles on Hopper and Blackwell
    bool triton_experts = false;      ///< experts with 4-bit weights run Triton's kernels on Hopper
    bool dispatches_modules = false;  ///< PyTorch dispatches the operators of a model's modules
    bool multiplies_int8 = false;     ///< llama.cpp multiplies quantised weights as int8, without widening them
    bool streams_half = false;        ///< its own kernels multiply f16 weights by up to 16 tokens, not 8
    bool keeps_scores = false;        ///< its attention keeps the scores on chip
};

/// The fields by their names in data/library_rules.tsv, in order.
inline constexpr std::string_view library_rule_names =
    "cudnn7_heuristic older_blas oldest_blas cublas_lt_of_any_size fuses_activations keeps_onnx_nodes "
    "unlimited_workspace "
    "flash1 xformers widens_attention weights_in_place vectorized_casts strided_reads volumes_to_aten "
    "concatenates_by_part newest_blas cudnn_attention sums_losses_by_blocks sums_by_nccl captures_decoding "
    "captures_pieces mixes_phases chunks_prompts schedules_ahead sorts_logits sorts_experts pads_experts "
    "triton_experts dispatches_modules multiplies_int8 streams_half keeps_scores";

/// Returns what libraries of these versions do; `engine` is the one of LibraryVersions::engine.
[[nodiscard]] LibraryBehaviour behaviour_of(const LibraryVersions& versions, Library engine);

}  // namespace ftax
