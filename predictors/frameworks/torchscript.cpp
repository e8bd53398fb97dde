#include "predictors/frameworks/frameworks.hpp"
#include "predictors/rewrites.hpp"

namespace ftax {

// torch.jit.trace or script, run by the profiling executor: no Python and no modules, runs of elementwise operators
// and batch norms become kernels of the fuser.
constexpr void (*passes[])(Graph&) = {rewrites::fuse_pointwise_and_batch_norm};

// Costs without Python. Source: first fits on framework_tax.csv, torchscript.
constexpr HostPrior priors[] = {
    {"host.conv", 76e-6},       {"host.conv_depthwise", 25e-6}, {"host.conv_grouped", 90e-6},
    {"host.batch_norm", 30e-6}, {"host.gemm", 35e-6},           {"host.bmm", 55e-6},
    {"host.layer_norm", 25e-6}, {"host.light", 12e-6},          {"host.view", 3e-6},
    {"host.fused", 25e-6},
};

const FrameworkModel torchscript{
    .name = "torchscript",
    .description = "TorchScript: profiling executor, elementwise operators fused",
    .traits = {.module_calls = false},
    .rewrites = passes,
    .rewrites_from_compute_capability_major = 7,  // NVFuser; on Pascal TorchScript takes as long as eager at batch 64
    .priors = priors,
};

}  // namespace ftax
