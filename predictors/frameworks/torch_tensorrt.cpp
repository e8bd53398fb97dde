#include "predictors/frameworks/engine_traits.hpp"
#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

// One engine for the whole graph, and another behind each operator that Torch-TensorRT 1.2 leaves to TorchScript:
// chunk and split return lists.
// Attention runs in its parts: these versions come with TensorRT 8.4 and without plugins.
constexpr void (*passes[])(Graph&) = {rewrites::recognise_attention,
                                      rewrites::fold_batch_norm,
                                      rewrites::merge_sibling_layers,
                                      rewrites::fuse_activation,
                                      rewrites::fuse_residual_layer_norm,
                                      rewrites::fuse_epilogue,
                                      rewrites::fuse_scale_and_activation,
                                      rewrites::fold_movement,
                                      rewrites::fuse_pointwise,
                                      rewrites::eliminate_concatenations,
                                      rewrites::name_engine_layers};
// An engine enqueues its layers in one call; what the call itself costs is the host's second scalar (host_costs.cpp).
// Source: flat rows of framework_tax.csv, torch-tensorrt fp16 on Quadro RTX 8000 (0.54 ms for the 21 layers of
// resnet18, 0.66 ms for the 64 of mobilenet_v2, 5.1 ms for the 1,400 of densenet161).
constexpr HostPrior priors[] = {{"host.engine", 4e-6}};

constexpr LoweringTraits segmented = [] {
    LoweringTraits traits = engine_traits;
    traits.calls_engines = true;
    return traits;
}();

const FrameworkModel torch_tensorrt{
    .name = "torch-tensorrt",
    .description = "TensorRT engine called from TorchScript",
    .traits = segmented,
    .rewrites = passes,
    .priors = priors,
    .measured = {.convolutional = true},
};

}  // namespace ftax
