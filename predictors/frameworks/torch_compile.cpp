#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

// Inductor: pointwise operators, norms, softmax and reductions become Triton kernels with those that read them;
// contractions stay library calls made by generated code.
constexpr void (*passes[])(Graph&) = {rewrites::fuse_into_readers};
// Max-autotune times Triton templates against the library: those take pointwise epilogues in.
constexpr void (*autotuned_passes[])(Graph&) = {rewrites::fuse_activation, rewrites::fuse_into_readers};
// Triton launchers and extern kernels called from generated Python, guards once per forward: orders of magnitude but
// for convolutions (hf_compile, ResNet-50 on an A100: 4.1 ms at batch 1 and 4).
constexpr HostPrior priors[] = {{"host.conv", 60e-6},        {"host.gemm", 15e-6},  {"host.bmm", 15e-6},
                                {"host.elementwise", 12e-6}, {"host.fused", 12e-6}, {"host.forward", 100e-6}};
// Guards, the tree of graphs and one launch, before the device has anything to do. Source: kernelbench.csv, torch 2.5,
// a single short kernel: 60 and 70 us on hosts that take 35 and 40 us under the default mode, 113 on one that takes 66;
// pytorch issue 150488, under a profiler: 176 us of guards, 128 of the tree, 41 of the launch.
constexpr HostPrior captured_priors[] = {{"host.forward", 80e-6}};

constexpr LoweringTraits compiled{.views_cost_host = false,
                                  .module_calls = false,
                                  .windows_stream = true,
                                  .cublas_lt_limit = no_cublas_lt_limit,
                                  .lays_out_convolutions = true};
constexpr LoweringTraits captured = [] {
    LoweringTraits traits = compiled;
    traits.host_kind = HostKind::graph_node;
    traits.copies_inputs = true;
    traits.synchronizes_runs = true;
    return traits;
}();

const FrameworkModel torch_compile{
    .name = "torch-compile",
    .description = "torch.compile, default mode: Inductor's fused kernels",
    .traits = compiled,
    .rewrites = passes,
    .priors = priors,
    .measured = {.convolutional = true, .transformers = true},
};
const FrameworkModel torch_compile_cuda_graph{
    .name = "torch-compile-cuda-graph",
    .description = "torch.compile, mode reduce-overhead: Inductor's kernels in a CUDA graph",
    .traits = captured,
    .rewrites = passes,
    .priors = captured_priors,
    .measured = {.convolutional = true, .transformers = true},
};
const FrameworkModel torch_compile_max_autotune{
    .name = "torch-compile-max-autotune",
    .description = "torch.compile, mode max-autotune: epilogues in products, in a CUDA graph",
    .traits = captured,
    .rewrites = autotuned_passes,
    .priors = captured_priors,
};

}  // namespace ftax
