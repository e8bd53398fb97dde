#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "ftax/predict.hpp"

/// What libraries do differently from version to version: rules read them by name, rows say when they hold.
namespace ftax {

/// Libraries with such rows; `none`: a framework without. Engines, after PyTorch, share LibraryVersions::engine.
enum class Library : std::uint8_t { cudnn, tensorrt, torch, none, onnxruntime, vllm, sglang, tensorrt_llm, llama_cpp };

/// What the libraries of a run do. False without a row of library_rules, so also for an unspecified PyTorch (0).
struct LibraryBehaviour {
    bool cudnn7_heuristic = false;       ///< cuDNN chooses convolutions as before version 8
    bool older_blas = false;             ///< see kernels::GemmShape and ConvShape
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

/// Versions in which a rule holds, 100 · major + minor (cuDNN: major; llama.cpp: year and month), without `until`.
struct LibraryRule {
    Library library;
    int from, until;
    bool LibraryBehaviour::*rule;
    std::string_view source;
};

namespace library_rules {

using enum Library;
using Does = LibraryBehaviour;
inline constexpr int later = std::numeric_limits<int>::max();
inline constexpr LibraryRule all[] = {
    {cudnn, 0, 8, &Does::cudnn7_heuristic, "cuDNN 7, cudnnGetConvolutionForwardAlgorithm_v7"},
    {cudnn, 0, 9, &Does::older_blas, "PyTorch ships cuDNN 9 and cuBLAS 12 from 2.4 on"},
    {cudnn, 9, later, &Does::cublas_lt_of_any_size, "PyTorch, Blas.cpp: CUDA 12.1 and later, most builds with cuDNN 9"},
    {tensorrt, 802, later, &Does::fuses_activations,
     "NVIDIA's tables of BERT: before, a kernel of its own reduces the error from 10 to 14 to 4 to 6 %; from 8.6 on it "
     "would raise it from 3 to 12"},
    {tensorrt, 0, 805, &Does::keeps_onnx_nodes,
     "TensorRT issue 3642 (the parser of 8.2 has no LayerNormalization), 3230; kernl's engines of 8.5 have fused "
     "attention"},
    {onnxruntime, 114, later, &Does::unlimited_workspace, "CUDA execution provider, cudnn_conv_use_max_workspace"},
    {torch, 1, later, &Does::concatenates_by_part, "aten/src/ATen/native/cuda/Shape.cu (CAT_ARRAY_MAX_INPUT_DIMS)"},
    {torch, 1, 202, &Does::flash1, "PyTorch 2.2's release notes"},
    {torch, 1, 200, &Does::xformers, "PyTorch 2.0's release notes: scaled_dot_product_attention is new"},
    {torch, 205, later, &Does::widens_attention,
     "aten/src/ATen/native/transformers/attention.cpp (_scaled_dot_product_attention_math, "
     "allowFP16BF16ReductionMathSDP), used for attention without four dimensions (sdp_utils.cpp)"},
    {torch, 1, 205, &Does::weights_in_place, "torch/_dynamo/config.py, inline_inbuilt_nn_modules of 2.5"},
    {torch, 206, later, &Does::vectorized_casts,
     "PyTorch pull request 137053; aten/src/ATen/native/cuda/Copy.cu, 2.11"},
    {torch, 1, 208, &Does::strided_reads, "torch/_inductor/tiling_utils.py, from 2.8 on"},
    {torch, 1, 208, &Does::volumes_to_aten, "torch/_inductor/lowering.py"},
    {torch, 211, later, &Does::newest_blas, "PyTorch 2.11 ships cuBLAS 13"},
    {torch, 211, later, &Does::cudnn_attention,
     "check_prefer_cudnn_attention of sdp_utils.cpp: cuDNN 9.15.1, which the packages of 2.11 are the first to "
     "contain"},
    {torch, 211, later, &Does::sums_losses_by_blocks, "PyTorch 2.11: 8.5 µs on an H100 and an H200"},
    {vllm, 0, 3, &Does::sums_by_nccl, "vLLM, csrc/custom_all_reduce.cuh (0.3)"},
    {vllm, 3, later, &Does::captures_decoding, "vLLM, pull request 1926 (0.2.6, December 2023)"},
    {vllm, 8, later, &Does::mixes_phases, "vLLM's release notes, V1 (0.8)"},
    {vllm, 8, later, &Does::chunks_prompts, "vLLM's release notes, V1 (0.8)"},
    {vllm, 8, later, &Does::captures_pieces, "vLLM's release notes, V1 (0.8)"},
    {vllm, 11, later, &Does::schedules_ahead, "vLLM's release notes, --async-scheduling (the default from 0.14 on)"},
    {vllm, 11, 14, &Does::sorts_logits,
     "vLLM, topk_topp_sampler.py (apply_top_k_top_p); FlashInfer's kernels later (pull request 40376)"},
    {vllm, 0, 14, &Does::sorts_experts,
     "vLLM, moe_align_block_size and count_and_sort_expert_tokens; the end is from serving_engines.csv, where GPT-OSS "
     "under 0.14 takes no more than the products"},
    {vllm, 11, 13, &Does::pads_experts, "vLLM 0.11.1, fused_moe.py (fused_experts), is_deep_gemm_supported: 9.0, 10.0"},
    {sglang, 0, later, &Does::captures_decoding, "SGLang, cuda_graph_max_bs"},
    {sglang, 0, later, &Does::chunks_prompts, "SGLang, --chunked-prefill-size"},
    {sglang, 4, later, &Does::schedules_ahead, "SGLang's release notes, zero-overhead batch scheduler (0.4)"},
    {tensorrt_llm, 0, later, &Does::mixes_phases, "TensorRT-LLM's release notes, in-flight batching"},
    {tensorrt_llm, 100, later, &Does::captures_decoding, "TensorRT-LLM 1.0, cuda_graph_config"},
    {tensorrt_llm, 100, later, &Does::schedules_ahead, "TensorRT-LLM 1.0, overlap scheduler"},
    {tensorrt_llm, 100, later, &Does::dispatches_modules, "TensorRT-LLM 1.0, the PyTorch backend"},
    {tensorrt_llm, 100, later, &Does::triton_experts, "TensorRT-LLM, fused_moe_triton.py; pull request 7101"},
    {llama_cpp, 0, later, &Does::captures_decoding, "llama.cpp, pull request 6766 (May 2024): single sequences"},
    {llama_cpp, 202406, later, &Does::multiplies_int8, "llama.cpp, pull requests 7676, 7860 and 8075 (June 2024)"},
    {llama_cpp, 202500, later, &Does::streams_half, "llama.cpp, ggml-cuda/mmf.cu (2025)"},
    {llama_cpp, 202500, later, &Does::keeps_scores, "llama.cpp, --flash-attn auto, the default of 2025; fattn.cu"},
};

}  // namespace library_rules

/// Returns what libraries of these versions do; `engine` is the one of LibraryVersions::engine.
[[nodiscard]] constexpr LibraryBehaviour behaviour_of(const LibraryVersions& versions, Library engine) {
    const int shared[] = {versions.cudnn, versions.tensorrt, versions.torch};
    LibraryBehaviour behaviour;
    for (const auto& [library, from, until, rule, source] : library_rules::all) {
        if (library > Library::none && library != engine) continue;
        const int version = library < Library::none ? shared[static_cast<int>(library)] : versions.engine;
        if (version >= from && version < until) behaviour.*rule = true;
    }
    return behaviour;
}

}  // namespace ftax
