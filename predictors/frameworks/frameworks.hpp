#pragma once

#include "predictors/frameworks/framework_model.hpp"

namespace ftax {

/// Returns traits with a change, for a framework that differs from another in it.
template <class Traits, class Change>
constexpr Traits changed(Traits traits, const Change& change) {
    change(traits);
    return traits;
}

/// Costs of operators dispatched from C++. Source: first fits on framework_tax.csv, torchscript.
inline constexpr HostPrior cpp_dispatch_costs[] = {
    {"host.conv", 76e-6},       {"host.conv_depthwise", 25e-6}, {"host.conv_grouped", 90e-6},
    {"host.batch_norm", 30e-6}, {"host.gemm", 35e-6},           {"host.bmm", 55e-6},
    {"host.layer_norm", 25e-6}, {"host.elementwise", 12e-6},    {"host.view", 3e-6},
    {"host.fused", 25e-6},
};

extern const FrameworkModel pytorch_eager;
extern const FrameworkModel torchscript;
extern const FrameworkModel torch_compile;
extern const FrameworkModel torch_compile_cuda_graph;
extern const FrameworkModel libtorch;
extern const FrameworkModel bettertransformer;
extern const FrameworkModel torch_cuda_graph;
extern const FrameworkModel cuda_graph;
extern const FrameworkModel onnxruntime_cuda;
extern const FrameworkModel onnxruntime_cuda_graph;
extern const FrameworkModel torch_tensorrt;
extern const FrameworkModel tensorrt;
extern const FrameworkModel tensorrt_cuda_graph;
extern const FrameworkModel vllm;
extern const FrameworkModel vllm_eager;
extern const FrameworkModel tensorrt_llm;
extern const FrameworkModel sglang;
extern const FrameworkModel llama_cpp;
extern const FrameworkModel tensorrt_onnx;
extern const FrameworkModel onnxruntime_tensorrt;
extern const FrameworkModel torch_compile_max_autotune;
extern const FrameworkModel torch_compile_max_autotune_no_cudagraphs;

}  // namespace ftax
