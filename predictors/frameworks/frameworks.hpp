#pragma once

#include "predictors/frameworks/framework_model.hpp"

namespace ftax {

/// Returns traits with a change, for a framework that differs from another in it.
template <class Traits, class Change>
constexpr Traits changed(Traits traits, const Change& change) {
    change(traits);
    return traits;
}

extern const FrameworkModel pytorch_eager, torchscript, torch_compile, torch_compile_cuda_graph, libtorch,
    bettertransformer, torch_cuda_graph, cuda_graph, onnxruntime_cuda, onnxruntime_cuda_graph, torch_tensorrt, tensorrt,
    tensorrt_cuda_graph, vllm, vllm_eager, tensorrt_llm, sglang, llama_cpp, tensorrt_onnx, onnxruntime_tensorrt,
    torch_compile_max_autotune, torch_compile_max_autotune_no_cudagraphs;

}  // namespace ftax
