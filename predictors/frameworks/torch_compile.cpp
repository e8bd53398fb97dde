#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

// Inductor: pointwise operators, norms, softmax and reductions are fused with their readers into Triton kernels;
// contractions are library calls from generated code.
constexpr Pass old_maxima{rewrites::keep_maxima_of_volumes, {.when = &LibraryBehaviour::volumes_to_aten}};
constexpr Pass passes[] = {old_maxima, rewrites::fuse_into_readers};
// Max-autotune times Triton templates, which fuse pointwise epilogues, against the library.
constexpr Pass autotuned_passes[] = {old_maxima, rewrites::fuse_activation, rewrites::fuse_into_readers};

constexpr LoweringTraits compiled{.views_cost_host = false,
                                  .module_calls = false,
                                  .gemm = {.cublas_lt_limit = kernels::no_cublas_lt_limit},
                                  .lays_out_convolutions = true,
                                  .from_capability_major = 7};  // Triton
constexpr LoweringTraits captured = changed(compiled, [](auto& traits) {
    traits.host_kind = HostKind::graph_node;
    traits.copies_inputs = true;
    traits.synchronizes_runs = true;
});

const FrameworkModel torch_compile{
    .name = "torch-compile",
    .description = "torch.compile, default mode: Inductor's fused kernels",
    .traits = compiled,
    .rewrites = passes,
};
const FrameworkModel torch_compile_max_autotune_no_cudagraphs = changed(torch_compile, [](FrameworkModel& model) {
    model.name = "torch-compile-max-autotune-no-cudagraphs";
    model.description = "torch.compile, mode max-autotune-no-cudagraphs: epilogues in products";
    model.rewrites = autotuned_passes;
});
const FrameworkModel torch_compile_cuda_graph = changed(torch_compile, [](FrameworkModel& model) {
    model.name = "torch-compile-cuda-graph";
    model.description = "torch.compile, mode reduce-overhead: Inductor's kernels in a CUDA graph";
    model.traits = captured;
});
const FrameworkModel torch_compile_max_autotune = changed(torch_compile_cuda_graph, [](FrameworkModel& model) {
    model.name = "torch-compile-max-autotune";
    model.description = "torch.compile, mode max-autotune: epilogues in products, in a CUDA graph";
    model.rewrites = autotuned_passes;
});

}  // namespace ftax
