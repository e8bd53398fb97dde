#include "predictors/frameworks/frameworks.hpp"
#include "predictors/lowering/rewrites.hpp"

namespace ftax {

// Eager PyTorch launches the graph operator by operator: no rewrites, and the default lowering.
const FrameworkModel pytorch_eager{
    .name = "pytorch-eager",
    .description =
        "PyTorch eager: every operator dispatched from Python; pytorch-eager@2.4 sets the version, from 1.8 on",
    .traits = {},
    .rewrites = {},
};

// Costs of operators dispatched from C++. Source: first fits on framework_tax.csv, torchscript.
constexpr HostPrior cpp_dispatch_costs[] = {
    {"host.conv", 76e-6},       {"host.conv_depthwise", 25e-6}, {"host.conv_grouped", 90e-6},
    {"host.batch_norm", 30e-6}, {"host.gemm", 35e-6},           {"host.bmm", 55e-6},
    {"host.layer_norm", 25e-6}, {"host.elementwise", 12e-6},    {"host.view", 3e-6},
    {"host.fused", 25e-6},
};

// The C++ front end dispatches the same operators as eager PyTorch, without Python and its module calls.
const FrameworkModel libtorch{
    .name = "libtorch",
    .description = "LibTorch: the operators of eager PyTorch dispatched from C++",
    .traits = {.module_calls = false},
    .rewrites = {},
    .priors = cpp_dispatch_costs,
};

// torch.jit.trace or script, run by the profiling executor: no Python and no modules; the fuser merges consecutive
// elementwise operators and batch norms.
constexpr Pass torchscript_passes[] = {
    {rewrites::fuse_pointwise_and_batch_norm, {.when = &LibraryBehaviour::fuses_in_torchscript}}};

const FrameworkModel torchscript{
    .name = "torchscript",
    .description = "TorchScript: profiling executor, elementwise operators fused",
    .traits = {.module_calls = false},
    .rewrites = torchscript_passes,
    .priors = cpp_dispatch_costs,
};

// torch.nn.TransformerEncoderLayer's fast path: one call per layer launches its kernels from C++, residual additions
// are fused into layer norms, and nested tensors omit padding.
// Source: PyTorch 1.12, aten/src/ATen/native/transformers/transformer.cpp, transformer_encoder_layer_forward.
constexpr Pass bettertransformer_passes[] = {rewrites::fuse_skip_layer_norm};

const FrameworkModel bettertransformer{
    .name = "bettertransformer",
    .description = "BetterTransformer: fused encoder layers, padded tokens skipped (--padding)",
    .traits = {.views_cost_host = false, .module_calls = false, .skips_padding = true, .batched_matmul_copies = false},
    .rewrites = bettertransformer_passes,
    .priors = cpp_dispatch_costs,
};

// A graph is captured once and launched as a whole: the host pays one launch; kernels and the gaps between them remain.
// Captured by hand, it reads its inputs and weights in place.
const FrameworkModel torch_cuda_graph{
    .name = "torch-cuda-graph",
    .description = "eager PyTorch's kernels in a CUDA graph captured by hand (torch.cuda.graph)",
    .traits = {.views_cost_host = false, .module_calls = false, .host_kind = HostKind::graph_node},
    .rewrites = {},
};

// torch.compile's backend copies inputs and weights into the graph. Models that update their buffers are not captured:
// the graph of AOTAutograd runs operator by operator.
// Source: torch/_dynamo/backends/cudagraphs.py (check_for_mutation_ignore_cuda_graph_managed_tensor).
constexpr Pass cuda_graph_passes[] = {rewrites::erase_unread, rewrites::write_out_updates};

const FrameworkModel cuda_graph{
    .name = "cuda-graph",
    .description = "eager PyTorch's kernels in a CUDA graph (torch.compile, backend cudagraphs)",
    .traits = {.views_cost_host = false,
               .module_calls = false,
               .captures_no_updates = true,
               .copies_inputs = true,
               .copies_weights = true,
               .host_kind = HostKind::graph_node},
    .rewrites = cuda_graph_passes,
};

}  // namespace ftax
