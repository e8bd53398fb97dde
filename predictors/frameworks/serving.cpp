#include <array>

#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

// Serving engines: merged layers, hand-written kernels between them, paged keys and values. Each step starts once the
// scheduler on the host has the tokens of the previous one.
constexpr Pass passes[] = {rewrites::recognise_attention, rewrites::absorb_latent_expansion, rewrites::append_to_pages,
                           rewrites::merge_sibling_layers, rewrites::fuse_between_contractions};
// llama.cpp does not merge the layers of queries, keys and values.
constexpr Pass unmerged_passes[] = {
    rewrites::recognise_attention, rewrites::absorb_latent_expansion, rewrites::append_to_pages,
    Pass{rewrites::defer_activations, {.when = &LibraryBehaviour::fuses_gates}}, rewrites::fuse_between_contractions};

constexpr LoweringTraits serving{.views_cost_host = false,
                                 .module_calls = false,
                                 .separate_conv_bias = false,
                                 .skips_padding = true,
                                 .gemm = {.cublas_lt_limit = kernels::no_cublas_lt_limit},
                                 .batched_matmul_copies = false,
                                 .serves_sequences = true,
                                 .synchronizes_runs = true};
constexpr LoweringTraits of(Library library) {
    return changed(serving, [&](auto& traits) { traits.library = library; });
}
constexpr LoweringTraits vllm_eager_traits = changed(serving, [](auto& traits) { traits.module_calls = true; });
constexpr LoweringTraits sglang_traits = changed(of(Library::sglang), [](auto& traits) {
    traits.module_calls = true;
    traits.calls_experts = true;
});
constexpr LoweringTraits tensorrt_llm_traits = changed(of(Library::tensorrt_llm), [](auto& traits) {
    traits.host_kind = HostKind::engine;
    traits.calls_experts = true;
});
// ggml's CUDA backend. Products of few tokens, and from June 2024 on all with quantised weights, use its own kernels,
// the rest cuBLAS. Source: llama.cpp, MMVQ_MAX_BATCH_SIZE and mmq.cu; for f16 pull request 14262.
constexpr LoweringTraits llama_cpp_traits = changed(of(Library::llama_cpp), [](auto& traits) {
    traits.gemm = {.cublas_lt_limit = 0, .row_bytes_per_cycle = 8, .dot_products = true};
    traits.host_kind = HostKind::engine;
    traits.half_accumulation = true;  // Source: ggml-cuda.cu, CUBLAS_COMPUTE_16F
    traits.wide_activations = true;
});

constexpr ServingTraits of_engines{
    // Source: TensorRT-LLM, max_num_tokens; vLLM, max_num_batched_tokens of the same order.
    .tokens_per_pass = 8192,
    // Fitted to the first tokens of serving_engines.csv under vLLM.
    .frontend_s = 20e-3};
// Graphs: vLLM, _set_cudagraph_sizes, before 0.8 256, as many as ran; SGLang, cuda_graph_max_bs of cards of 80 GB and
// more; TensorRT-LLM's published configurations, up to the largest batch. Evictions: vLLM, preemption by recomputation;
// SGLang, retract_decode; TensorRT-LLM has GUARANTEED_NO_EVICT.
constexpr ServingTraits captured(bool evicts_sequences, std::int64_t most_sequences = 512) {
    return changed(of_engines, [&](auto& traits) {
        traits.most_captured_sequences = most_sequences;
        traits.evicts_sequences = evicts_sequences;
    });
}

// Order of magnitude: PyTorch's dispatcher under inference mode, custom operators bound to Python; prompts only.
constexpr HostPrior vllm_priors[] = {{"host.gemm", 15e-6},     {"host.bmm", 30e-6},         {"host.fused", 10e-6},
                                     {"host.blas_call", 2e-6}, {"host.elementwise", 10e-6}, {"host.forward", 2.1e-3},
                                     {"host.sequence", 67e-6}};
// PyTorch's own costs of an operator (data/profiles, torch 2.7); between products two operators of the engine, each a
// call through torch.ops. Kernels of an engine of 2024, and all but the first of a layer's experts, start from C++.
constexpr std::array<HostPrior, 9> dispatched(double forward_s, double sequence_s) {
    return {{{"host.engine", 4e-6},
             {"host.gemm", 56e-6},
             {"host.bmm", 73e-6},
             {"host.fused", 28e-6},
             {"host.elementwise", 14e-6},
             {"host.module_call", 1.9e-6},
             {"host.blas_call", 5e-6},
             {"host.forward", forward_s},
             {"host.sequence", sequence_s}}};
}
constexpr std::array vllm_eager_priors = dispatched(1.8e-3, 75e-6);  // step costs as with graphs
// A step: SGLang's own benchmarks of LFM2.5-350M, 0.92 ms a token on a B200; 4.4 us a request as in vLLM (BLIS).
constexpr std::array sglang_priors = dispatched(0.9e-3, 4.4e-6);
constexpr std::array tensorrt_llm_priors = dispatched(1.1e-3, 16e-6);
// Orders of magnitude: a launch from C++; a step of 2024 (data/stacks has later ones); the sampler.
constexpr HostPrior llama_cpp_priors[] = {{"host.engine", 4e-6}, {"host.forward", 5e-4}, {"host.sequence", 50e-6}};

const FrameworkModel vllm{
    .name = "vllm",
    .description = "vLLM: paged attention, CUDA graphs for decoding, continuous batching",
    .traits = of(Library::vllm),
    .serving = captured(true),
    .rewrites = passes,
    .priors = vllm_priors,
    // Includes CUDA graphs of all batch sizes (vLLM: "CUDA graphs can take additional 1~3 GiB memory per GPU") or an
    // engine's buffers for its maximum number of tokens (order of magnitude).
    .context_bytes = 2e9,
};
const FrameworkModel vllm_eager{
    .name = "vllm-eager",
    .description = "vLLM with --enforce-eager: PyTorch launches each step kernel by kernel",
    .traits = vllm_eager_traits,
    .serving = captured(true),
    .rewrites = passes,
    .priors = vllm_eager_priors,
};
const FrameworkModel tensorrt_llm = changed(vllm, [](FrameworkModel& model) {
    model.name = "tensorrt-llm";
    model.description = "TensorRT-LLM engine: paged attention, continuous batching in C++";
    model.traits = tensorrt_llm_traits;
    model.serving = captured(false, 8192);
    model.priors = tensorrt_llm_priors;
});
const FrameworkModel sglang = changed(vllm, [](FrameworkModel& model) {
    model.name = "sglang";
    model.description = "SGLang 0.5: paged attention, CUDA graphs for decoding, the host schedules one step ahead";
    model.traits = sglang_traits;
    model.priors = sglang_priors;
    model.serving.frontend_s = 5e-3;  // source: its benchmarks of LFM2.5, one client: 11 to 26 ms for 512 tokens
});
const FrameworkModel llama_cpp{
    .name = "llama.cpp",
    .description =
        "llama.cpp on CUDA: kernels of its own for few tokens and quantised weights, CUDA graphs for one sequence",
    .traits = llama_cpp_traits,
    .serving = {.most_captured_sequences = 1,
                .tokens_per_pass = 512,  // Source: llama.cpp, --ubatch-size
                .splits_prompts = true,
                .splits_tensors = false,
                .frontend_s = of_engines.frontend_s},
    .rewrites = unmerged_passes,
    .priors = llama_cpp_priors,
};

}  // namespace ftax
