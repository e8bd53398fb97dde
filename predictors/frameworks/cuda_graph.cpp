#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

// A graph is captured once and launched as a whole: the host pays one launch; kernels and the gaps between them remain.
// Captured by hand, it reads its inputs and weights in place.
const FrameworkModel torch_cuda_graph{
    .name = "torch-cuda-graph",
    .description = "eager PyTorch's kernels in a CUDA graph captured by hand (torch.cuda.graph)",
    .traits = {.views_cost_host = false, .module_calls = false, .host_kind = HostKind::graph_node},
    .rewrites = {},
};

// torch.compile's backend copies inputs and weights into the graph. Models that update their buffers are not captured:
// the graph of AOTAutograd runs operator by operator.
// Source: torch/_dynamo/backends/cudagraphs.py (check_for_mutation_ignore_cuda_graph_managed_tensor).
constexpr Pass passes[] = {rewrites::erase_unread, rewrites::write_out_updates};

const FrameworkModel cuda_graph{
    .name = "cuda-graph",
    .description = "eager PyTorch's kernels in a CUDA graph (torch.compile, backend cudagraphs)",
    .traits = {.views_cost_host = false,
               .module_calls = false,
               .captures_no_updates = true,
               .copies_inputs = true,
               .copies_weights = true,
               .host_kind = HostKind::graph_node},
    .rewrites = passes,
};

}  // namespace ftax
