#include "predictors/frameworks/frameworks.hpp"

namespace ftax {

// Captured once, then launched as a whole: the host pays one launch, the kernels and the gaps between them remain.
// Source: kernl's BERT on an RTX 3090, 1.07 ms for the 215 kernels of one sequence of 16 tokens.
constexpr HostPrior priors[] = {{"kernel_gap_s", 1.5e-6}};

const FrameworkModel cuda_graph{
    .name = "cuda-graph",
    .description = "CUDA graph captured over eager PyTorch",
    .traits = {.views_cost_host = false, .module_calls = false, .host_kind = HostKind::graph_node},
    .rewrites = {},
    .priors = priors,
    .measured = {.transformers = true},
};

}  // namespace ftax
