#include <algorithm>
#include <array>

#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

// How engines of TensorRT run a graph, whoever calls them. They accumulate fp16 in half precision. Source:
// pytorch/TensorRT pull request 3110, where f32 is an option (use_fp32_acc).
constexpr LoweringTraits engine_traits{.views_cost_host = false,
                                       .views_move_data = true,
                                       .module_calls = false,
                                       .separate_conv_bias = false,
                                       .gemm = {.cublas_lt_limit = kernels::no_cublas_lt_limit},
                                       .conv = {.channels_last = true, .library = kernels::ConvLibrary::tensorrt},
                                       .half_accumulation = true,
                                       .windows_stream = true,
                                       .batched_matmul_copies = false,
                                       .engine = true,
                                       .host_kind = HostKind::engine};

// What TensorRT's builder makes of a network, in this order. A BERT layer becomes seven kernels: one product for
// queries, keys and values, attention, the product after it, residual and norm, and the two products of the
// feed-forward with another norm. Biases are added in the products. Source: TensorRT, demo/BERT; developer guide,
// "Types of Fusions".
constexpr std::array<Pass, 11> builder_passes{rewrites::recognise_attention,
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

// An engine enqueues its layers in one call, whose cost is the host's second scalar (host_costs.cpp).
constexpr HostPrior calls[] = {{"host.engine", 4e-6}};

// One engine for the whole graph, plus one after each operator that Torch-TensorRT 1.2 leaves to TorchScript: chunk and
// split return lists. Attention is not fused: these versions ship TensorRT 8.4 without plugins.
constexpr LoweringTraits segmented = changed(engine_traits, [](auto& traits) { traits.calls_engines = true; });

const FrameworkModel torch_tensorrt{
    .name = "torch-tensorrt",
    .description = "TensorRT engine called from TorchScript",
    .traits = segmented,
    .rewrites = builder_passes,
    .priors = calls,
};

// Explicit quantisation comes first, then the removals by the ONNX parser and constant folding. Volta never fuses GELU.
constexpr auto passes = [] {
    std::array<Pass, 4 + builder_passes.size()> all{rewrites::fold_quantization, rewrites::remove_copies,
                                                    rewrites::fold_constants, rewrites::recognise_layers};
    std::copy(builder_passes.begin(), builder_passes.end(), all.begin() + 4);
    for (Pass& pass : all)
        if (pass.rewrite == rewrites::fuse_activation) pass.limits = {.when = &LibraryBehaviour::fuses_activations};
    return all;
}();

// Before 8.5, engines of ONNX files have the nodes of the file around attention and norms.
constexpr auto parsed_passes = [] {
    std::array<Pass, 3 + passes.size()> all;
    auto next = std::copy(passes.begin(), passes.begin() + 4, all.begin());
    *next++ = {rewrites::write_out_movement, {.when = &LibraryBehaviour::keeps_onnx_nodes}};
    *next++ = {rewrites::write_out_attention, {.when = &LibraryBehaviour::keeps_onnx_nodes}};
    *next++ = {rewrites::write_out_layer_norm, {.when = &LibraryBehaviour::splits_norms}};
    std::copy(passes.begin() + 4, passes.end(), next);
    for (Pass& pass : all)
        if (pass.rewrite == rewrites::recognise_attention || pass.rewrite == rewrites::merge_sibling_layers ||
            pass.rewrite == rewrites::fold_movement)
            pass.limits.unless = &LibraryBehaviour::keeps_onnx_nodes;
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

// One call enqueues the kernels of all layers. Source: trtexec's enqueue times, YOLOv8n 0.61 ms on an RTX 2080 Ti
// (THU-MIG/yolov10 issue 88), ViT 0.37 ms on an A100 (bnabis93/vision-language-examples pull request 11).
constexpr HostPrior enqueue{"host.engine", 3.7e-6}, gap{"kernel_gap_s", 0.7e-6};
constexpr HostPrior priors[] = {enqueue, gap};
// Enqueue time of a graph: 20 to 55 µs (the same logs).
constexpr HostPrior captured_priors[] = {{"host.forward", 20e-6}, gap};
constexpr LoweringTraits captured = changed(engine, [](auto& traits) { traits.host_kind = HostKind::graph_node; });
constexpr LoweringTraits parsed = changed(engine, [](auto& traits) {
    traits.fused_attention = of_onnx;
    traits.synchronizes_runs = true;
});
// Setting bindings and waiting for a run.
constexpr HostPrior parsed_priors[] = {enqueue, {"host.forward", 150e-6}, gap};

const FrameworkModel tensorrt{
    .name = "tensorrt",
    .description = "TensorRT engine; tensorrt@8.6 sets the version, from 7.1 on",
    .traits = engine,
    .rewrites = passes,
    .priors = priors,
};
const FrameworkModel tensorrt_cuda_graph = changed(tensorrt, [](FrameworkModel& model) {
    model.name = "tensorrt-cuda-graph";
    model.description = "TensorRT engine in a CUDA graph (trtexec --useCudaGraph)";
    model.traits = captured;
    model.priors = captured_priors;
});
const FrameworkModel tensorrt_onnx{
    .name = "tensorrt-onnx",
    .description = "TensorRT engine of an ONNX file, without plugins: attention fused from 8.6 on",
    .traits = parsed,
    .rewrites = parsed_passes,
    .priors = parsed_priors,
};
const FrameworkModel onnxruntime_tensorrt = changed(tensorrt_onnx, [](FrameworkModel& model) {
    model.name = "onnxruntime-tensorrt";
    model.description = "ONNX Runtime with the TensorRT execution provider: one engine in a session";
});

}  // namespace ftax
