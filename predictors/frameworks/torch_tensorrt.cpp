#include "predictors/frameworks/engine_traits.hpp"
#include "predictors/frameworks/frameworks.hpp"

namespace ftax {

// An engine enqueues its layers in one call, whose cost is the host's second scalar (host_costs.cpp).
// Source: flat rows of framework_tax.csv, torch-tensorrt fp16 on Quadro RTX 8000 (0.54 ms for the 21 layers of
// resnet18, 0.66 ms for the 64 of mobilenet_v2, 5.1 ms for the 1,400 of densenet161).
constexpr HostPrior priors[] = {{"host.engine", 4e-6}};

// One engine for the whole graph, plus one after each operator that Torch-TensorRT 1.2 leaves to TorchScript: chunk and
// split return lists. Attention is not fused: these versions ship TensorRT 8.4 without plugins.
constexpr LoweringTraits segmented = changed(engine_traits, [](auto& traits) { traits.calls_engines = true; });

const FrameworkModel torch_tensorrt{
    .name = "torch-tensorrt",
    .description = "TensorRT engine called from TorchScript",
    .traits = segmented,
    .rewrites = builder_passes,
    .priors = priors,
};

}  // namespace ftax
