#include "predictors/frameworks/frameworks.hpp"

namespace ftax {

// Captured once, then launched as a whole: the host pays one launch, the kernels and the gaps between them remain.
const FrameworkModel cuda_graph{
    .name = "cuda-graph",
    .description = "CUDA graph captured over eager PyTorch",
    .traits = {.views_cost_host = false, .module_calls = false, .host_kind = HostKind::graph_node},
    .rewrites = {},
};

}  // namespace ftax
