#include "predictors/frameworks/frameworks.hpp"

namespace ftax {

// Captured once, then launched as a whole: the host pays one launch, the kernels and the gaps between them remain.
// Source: kernl's BERT on an RTX 3090, 1.07 ms for the 215 kernels of one sequence of 16 tokens.
// The call goes through torch.compile's guards (backend cudagraphs): kernelbench.csv, 63 to 113 us for a short kernel.
constexpr HostPrior priors[] = {{"kernel_gap_s", 1.5e-6}, {"host.forward", 80e-6}};

const FrameworkModel cuda_graph{
    .name = "cuda-graph",
    .description = "CUDA graph captured over eager PyTorch",
    .traits = {.views_cost_host = false,
               .module_calls = false,
               .copies_inputs = true,
               .host_kind = HostKind::graph_node},
    .rewrites = {},
    .priors = priors,
    .measured = {.transformers = true},
};

}  // namespace ftax
