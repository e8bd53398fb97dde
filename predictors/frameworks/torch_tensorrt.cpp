#include "predictors/frameworks/frameworks.hpp"
#include "predictors/rewrites.hpp"

namespace ftax {

// One engine for the whole graph; what it cannot convert stays in TorchScript and is not modelled apart.
constexpr void (*passes[])(Graph&) = {rewrites::fold_batch_norm, rewrites::fuse_epilogue, rewrites::fuse_pointwise,
                                      rewrites::remove_concatenations};
constexpr LoweringTraits engine{.views_cost_host = false,
                                .views_move_data = true,
                                .module_calls = false,
                                .separate_conv_bias = false,
                                .batched_matmul_copies = false,
                                .host_kind = HostKind::engine};

const FrameworkModel torch_tensorrt{
    .name = "torch-tensorrt",
    .description = "TensorRT engine called from TorchScript",
    .traits = engine,
    .rewrites = passes,
};
const FrameworkModel tensorrt{
    .name = "tensorrt",
    .description = "TensorRT engine",
    .traits = engine,
    .rewrites = passes,
};

}  // namespace ftax
