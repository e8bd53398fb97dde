#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

// The export expands attention and drops copies; then come all graph optimisations (ORT_ENABLE_ALL):
// constants and batch norms folded, layers recognised, FusedConv with relu (f32 only), SkipLayerNormalization; nodes
// that move data are kernels, reshapes are free. Source: ONNX Runtime, "Graph Optimizations in ONNX Runtime";
// cuda_execution_provider.cc registers FusedConv for float alone.
constexpr Pass passes[] = {
    rewrites::remove_copies,        rewrites::write_out_movement,    rewrites::fold_constants,
    rewrites::recognise_layers,     rewrites::write_out_attention,   rewrites::write_out_gates,
    rewrites::write_out_group_norm, rewrites::fold_batch_norm,       {rewrites::fuse_conv_relu, {.in_f32_only = true}},
    rewrites::fuse_skip_layer_norm, rewrites::join_movement_of_nodes};

constexpr HostPrior priors[] = {{"host.engine", 8e-6}, {"host.forward", 100e-6}};

// Fused attention: fp16 from Turing on; otherwise two products and a softmax.
// Source: ONNX Runtime 1.12, contrib_ops/cuda/bert/attention.cc (FusedMHARunnerFP16v2::is_supported).
constexpr FusedAttention fused_attention[] = {
    {.least_chip = 75, .least_head = 32, .greatest_head = 64, .step = 32, .longest = 384}};

constexpr LoweringTraits nodes{
    .library = Library::onnxruntime,
    .views_cost_host = false,
    .views_move_data = true,
    .module_calls = false,
    .separate_conv_bias = true,  // cudnnAddTensor (nn/conv.cc); FusedConv includes it
    .concat_copies_tables = true,
    .gemm = {.cublas_lt_limit = 0},  // cublasGemmHelper (shared_inc/fpgeneric.h)
    // cudnn_conv_algo_search = EXHAUSTIVE, the default; cudnn_conv_use_max_workspace = 0, the default before 1.14
    .conv = {.library = kernels::ConvLibrary::cudnn_timed, .workspace_bytes = 32 << 20},
    .batched_matmul_copies = false,
    .persistent_recurrences = false,  // CUDNN_RNN_ALGO_STANDARD (rnn/cudnn_rnn_base.h)
    .synchronizes_runs = true,        // InferenceSession::Run ends with a synchronisation of the stream
    .resizes_volumes_by_index = true,
    .joins_contrib_nodes = true,
    .fused_attention = fused_attention,
    .host_kind = HostKind::engine};
constexpr LoweringTraits captured = changed(nodes, [](auto& traits) { traits.host_kind = HostKind::graph_node; });

const FrameworkModel onnxruntime_cuda{
    .name = "onnxruntime-cuda",
    .description = "ONNX Runtime with the CUDA execution provider",
    .traits = nodes,
    .rewrites = passes,
    .priors = priors,
};
const FrameworkModel onnxruntime_cuda_graph{
    .name = "onnxruntime-cuda-graph",
    .description = "ONNX Runtime with the CUDA execution provider, captured as a CUDA graph (enable_cuda_graph)",
    .traits = captured,
    .rewrites = passes,
};

}  // namespace ftax
