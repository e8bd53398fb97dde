#include "predictors/frameworks/frameworks.hpp"

namespace ftax {

// The C++ front end dispatches the same operators as eager PyTorch, without Python and its module calls.
const FrameworkModel libtorch{
    .name = "libtorch",
    .description = "LibTorch: the operators of eager PyTorch dispatched from C++",
    .traits = {.module_calls = false},
    .rewrites = {},
    .priors = cpp_dispatch_costs,
};

}  // namespace ftax
