#include "predictors/frameworks/frameworks.hpp"
#include "predictors/rewrites.hpp"

namespace ftax {

// All graph optimisations (ORT_ENABLE_ALL): batch norms folded, FusedConv with relu, SkipLayerNormalization; nodes
// that move data are kernels, reshapes are free. Source: ONNX Runtime, "Graph Optimizations in ONNX Runtime".
constexpr void (*passes[])(Graph&) = {rewrites::fold_batch_norm, rewrites::fuse_conv_relu,
                                      rewrites::fuse_skip_layer_norm};

const FrameworkModel onnxruntime_cuda{
    .name = "onnxruntime-cuda",
    .description = "ONNX Runtime with the CUDA execution provider",
    .traits = {.views_cost_host = false,
               .views_move_data = true,
               .module_calls = false,
               .separate_conv_bias = false,
               .batched_matmul_copies = false,
               .host_kind = HostKind::engine},
    .rewrites = passes,
};

}  // namespace ftax
