#pragma once

#include "predictors/framework_model.hpp"

namespace ftax {

extern const FrameworkModel pytorch_eager;
extern const FrameworkModel torchscript;
extern const FrameworkModel torch_compile;
extern const FrameworkModel libtorch;
extern const FrameworkModel cuda_graph;
extern const FrameworkModel onnxruntime_cuda;
extern const FrameworkModel torch_tensorrt;
extern const FrameworkModel tensorrt;

}  // namespace ftax
