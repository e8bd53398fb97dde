#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

// torch.jit.trace or script, run by the profiling executor: no Python and no modules; the fuser merges consecutive
// elementwise operators and batch norms.
constexpr Pass passes[] = {rewrites::fuse_pointwise_and_batch_norm};

const FrameworkModel torchscript{
    .name = "torchscript",
    .description = "TorchScript: profiling executor, elementwise operators fused",
    .traits = {.module_calls = false},
    .rewrites = passes,
    .rewrites_from_compute_capability_major = 7,  // NVFuser; on Pascal, TorchScript takes as long as eager at batch 64
    .priors = cpp_dispatch_costs,
};

}  // namespace ftax
