#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

// Inductor: elementwise operators, norms, softmax and reductions that follow one another become one Triton kernel;
// contractions stay library calls made by generated Python.
constexpr void (*passes[])(Graph&) = {rewrites::fuse_pointwise_and_reductions};
// Order of magnitude: Triton launchers and extern kernels called from generated Python, guards once per forward.
constexpr HostPrior priors[] = {{"host.conv", 40e-6},        {"host.gemm", 15e-6},  {"host.bmm", 15e-6},
                                {"host.elementwise", 12e-6}, {"host.fused", 12e-6}, {"host.forward", 100e-6}};
constexpr LoweringTraits traits{.views_cost_host = false, .module_calls = false, .cublas_lt_limit = no_cublas_lt_limit};

const FrameworkModel torch_compile{
    .name = "torch-compile",
    .description = "torch.compile, default mode: Inductor's fused kernels",
    .traits = traits,
    .rewrites = passes,
    .priors = priors,
};

// mode="reduce-overhead": the host checks guards, copies inputs and launches one graph. Inductor fuses across views.
constexpr void (*captured_passes[])(Graph&) = {rewrites::fuse_between_contractions};
constexpr LoweringTraits captured_traits = [] {
    LoweringTraits captured = traits;
    captured.host_kind = HostKind::graph_node;
    return captured;
}();

const FrameworkModel torch_compile_cuda_graph{
    .name = "torch-compile-cuda-graph",
    .description = "torch.compile, mode=reduce-overhead: Inductor's kernels in one CUDA graph",
    .traits = captured_traits,
    .rewrites = captured_passes,
    .priors = priors,
};

}  // namespace ftax
