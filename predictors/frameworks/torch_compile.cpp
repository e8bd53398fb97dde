#include "predictors/frameworks/frameworks.hpp"
#include "predictors/rewrites.hpp"

namespace ftax {

// Inductor: elementwise operators, norms, softmax and reductions that follow one another become one Triton kernel;
// contractions stay library calls made by generated Python.
constexpr void (*passes[])(Graph&) = {rewrites::fuse_pointwise_and_reductions};
constexpr LoweringTraits traits{.views_cost_host = false, .module_calls = false};

const FrameworkModel torch_compile{
    .name = "torch-compile",
    .description = "torch.compile, default mode: Inductor's fused kernels",
    .traits = traits,
    .rewrites = passes,
};

}  // namespace ftax
