#include <algorithm>
#include <array>

#include "predictors/frameworks/engine_traits.hpp"
#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

// Explicit quantisation comes first, then the removals by the ONNX parser and constant folding. On Volta, GELU is a
// separate kernel in any version.
constexpr auto passes = [] {
    std::array<Pass, 4 + builder_passes.size()> all{rewrites::fold_quantization, rewrites::remove_copies,
                                                    rewrites::fold_constants, rewrites::recognise_layers};
    std::copy(builder_passes.begin(), builder_passes.end(), all.begin() + 4);
    for (Pass& pass : all) {
        if (pass.rewrite == rewrites::fuse_activation)
            pass.limits = {.when = &LibraryBehaviour::fuses_activations, .from_chip = 75};
    }
    return all;
}();

// Versions from and below, chips, head widths and their step, longest sequence, one block per head, type.
// Myelin's own kernels. Source: release notes of 8.6 and 10; issues 2736, 2981, 3575. fp8: on Ada and newer. Source:
// release notes of 10.6 and 10.7.
constexpr FusedAttention myelin{806, 0, 75, 0, 16, 256, 8};
constexpr FusedAttention myelin_fp8{1006, 1007, 89, 0, 16, 64, 16, 3072, false, DType::f8e4m3};
constexpr FusedAttention newer_myelin_fp8{1007, 0, 89, 0, 16, 256, 16, 0, false, DType::f8e4m3};
constexpr FusedAttention of_onnx[] = {myelin, myelin_fp8, newer_myelin_fp8};
// Kernels of the plugin, before Myelin's: one block per head. Source: TensorRT, plugin/bertQKVToContextPlugin (README:
// supported sequences, heads and chips; longer sequences and heads of 32 from version 2 of it on). int8 for heads of 64
// and up to 384 tokens; Myelin's kernels only support explicit Q/DQ.
constexpr FusedAttention of_plugin[] = {
    {0, 800, 75, 80, 64, 64, 1, 384, true, DType::f16},
    {800, 0, 75, 120, 32, 64, 32, 512, true, DType::f16},
    myelin,
    {0, 800, 75, 80, 64, 64, 1, 384, true, DType::i8},
    {800, 0, 75, 120, 64, 64, 1, 384, true, DType::i8},
    myelin_fp8,
    newer_myelin_fp8,
};

constexpr LoweringTraits engine = changed(engine_traits, [](auto& traits) { traits.fused_attention = of_plugin; });

// One call enqueues all layers, or a CUDA graph of them. NVIDIA's tables show no host time, only gaps between kernels.
constexpr HostPrior priors[] = {{"host.engine", 1e-6}, {"kernel_gap_s", 0.7e-6}};
constexpr LoweringTraits parsed = changed(engine, [](auto& traits) {
    traits.fused_attention = of_onnx;
    traits.synchronizes_runs = true;
});
// Setting bindings and waiting for a run. Source: between kernl's BERT from Python on an RTX 3090 (1.0 ms at 16 tokens:
// 300 us) and ResNet-18 in int8 on an RTX 3060 (0.2 ms in all: below 60 us).
constexpr HostPrior parsed_priors[] = {{"host.engine", 1e-6}, {"host.forward", 150e-6}, {"kernel_gap_s", 0.7e-6}};

const FrameworkModel tensorrt{
    .name = "tensorrt",
    .description = "TensorRT engine; tensorrt@8.6 for its version, from 7.1 on",
    .traits = engine,
    .rewrites = passes,
    .priors = priors,
};
const FrameworkModel tensorrt_onnx{
    .name = "tensorrt-onnx",
    .description = "TensorRT engine of an ONNX file, without plugins: attention fused from 8.6 on",
    .traits = parsed,
    .rewrites = passes,
    .priors = parsed_priors,
};
const FrameworkModel onnxruntime_tensorrt{
    .name = "onnxruntime-tensorrt",
    .description = "ONNX Runtime with the TensorRT execution provider: one engine in a session",
    .traits = parsed,
    .rewrites = passes,
    .priors = parsed_priors,
};

}  // namespace ftax
