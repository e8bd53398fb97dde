#include "predictors/frameworks/frameworks.hpp"

namespace ftax {

// Eager PyTorch launches the graph operator by operator: no rewrites, and the default lowering.
const FrameworkModel pytorch_eager{
    .name = "pytorch-eager",
    .description =
        "PyTorch eager: every operator dispatched from Python; pytorch-eager@2.4 for its version, from 1.12 on",
    .traits = {},
    .rewrites = {},
};

}  // namespace ftax
