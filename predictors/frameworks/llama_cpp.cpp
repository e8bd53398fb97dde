#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

// ggml's CUDA backend: layers stay apart, what stands between them takes few kernels, keys and values are written where
// they stay. Products of up to eight tokens, and all with quantised weights, are kernels of its own, the rest is
// cuBLAS. Source: llama.cpp, MMVQ_MAX_BATCH_SIZE and mmq.cu; for f16 pull request 14262.
constexpr void (*passes[])(Graph&) = {rewrites::recognise_attention, rewrites::absorb_latent_expansion,
                                      rewrites::append_to_pages, rewrites::fuse_between_contractions};

constexpr LoweringTraits traits{
    .views_cost_host = false,
    .module_calls = false,
    .separate_conv_bias = false,
    .skips_padding = true,
    .cublas_lt_limit = 0,
    .batched_matmul_copies = false,
    // Source: Llama-2-7B in f16 decodes 74 tokens/s on an A100 80GB, half of its bandwidth, 83 on an H100 PCIe, 55 %,
    // but 52 on an RTX 3090, 73 % (github.com/XiongjieDai/GPU-Benchmarks-on-LLM-Inference, snapshots of December 2023);
    // with 17 figures of those tables and llm_static.csv in view.
    .row_bytes_per_cycle = 8,
    // Source: llama.cpp, pull request 6766 (May 2024): CUDA graphs for single sequences, from Ampere on.
    .captures_decoding_from = 0,
    .most_captured_sequences = 1,
    .captures_from_capability_major = 8,
    .tokens_per_pass = 512,  // Source: llama.cpp, --ubatch-size
    .splits_prompts = true,
    .splits_tensors = false,
    .serves_sequences = true,
    .synchronizes_runs = true,
    .host_kind = HostKind::engine,
};

// Orders of magnitude: a launch from C++; the graph's construction and the logits' way to the host, with the same
// figures in view; the sampler.
constexpr HostPrior priors[] = {{"host.engine", 4e-6}, {"host.forward", 5e-4}, {"host.sequence", 50e-6}};

const FrameworkModel llama_cpp{
    .name = "llama.cpp",
    .description =
        "llama.cpp on CUDA (versions of 2024): matrix-vector kernels of its own, CUDA graphs for one sequence",
    .traits = traits,
    .rewrites = passes,
    .priors = priors,
};

}  // namespace ftax
