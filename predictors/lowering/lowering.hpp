#pragma once

#include <optional>
#include <span>

#include "ftax/device.hpp"
#include "ftax/graph.hpp"
#include "ftax/predict.hpp"
#include "predictors/timeline/schedule.hpp"

namespace ftax {

/// A fused attention kernel of an engine builder, with the versions, chips and shapes that it supports.
struct FusedAttention {
    int from_version = 0, below_version = 0;      ///< 100 · major + minor; 0: no limit
    int least_chip = 0, greatest_chip = 0;        ///< 10 · compute capability
    int least_head = 0, greatest_head = 0, step;  ///< head widths, `step` apart
    std::int64_t longest = 0;                     ///< longest sequence; 0: any
    bool whole_heads = false;                     ///< one block per head, regardless of the sequence length
    DType type = DType::f16;                      ///< type of queries, keys and values; f16 includes bf16
};

/// How a framework executes the operators of a (rewritten) graph one after another.
struct LoweringTraits {
    bool views_cost_host = true;        ///< reshape, transpose, slice … go through the dispatcher
    bool views_move_data = false;       ///< transposes and slices launch kernels
    bool module_calls = true;           ///< each nn.Module call costs host time
    bool separate_conv_bias = true;     ///< the bias of a convolution is a separate kernel
    bool concat_copies_tables = false;  ///< a concat of unequal parts first copies tables to the device
    bool skips_padding = false;         ///< nested tensors: padded tokens are not computed
    kernels::ConvLibrary conv_library = kernels::ConvLibrary::cudnn_heuristic;
    /// Convolutions accumulate fp16 in half precision, which doubles the rate on GeForce cards; products do not.
    /// Source: framework_tax.csv and framework_tax_more.csv, Torch-TensorRT on an RTX 2080 Ti and a 3090; kernl's BERT
    /// on a 3090.
    bool half_accumulation = false;
    /// Compute capability × 10 from which quantised weights use dp4a if there are no tensor cores; 0: never.
    int dot_products_from = 0;
    bool half_products = false;  ///< matrix products accumulate in half precision, too
    /// Activations are f32. Products with more than few_rows tokens use cuBLAS in f16: separate kernels convert the
    /// operands and dequantise the weights. Attention materialises its scores.
    bool wide_activations = false;
    bool calls_engines = false;   ///< a run calls one engine, plus one after each graph break
    bool channels_last = false;   ///< half-precision activations are NHWC
    bool windows_stream = false;  ///< pooling and resizing kernels are bandwidth-bound; pooling stores no indices
    std::int64_t conv_workspace_bytes = 0;  ///< workspace limit of a convolution; 0: none
    /// Linear layers with bias and all dimensions below this use cublasLt; 0: none. Source: PyTorch 1.12,
    /// aten/src/ATen/native/cuda/Blas.cpp (addmm_out_cuda_impl), built for CUDA 11.4 or later.
    std::int64_t cublas_lt_limit = 65535;
    bool batched_matmul_copies = true;   ///< operands whose leading dimensions cannot be merged are copied first
    bool persistent_recurrences = true;  ///< a small recurrent layer is one kernel (PyTorch with cuDNN 8.2 and later)
    /// Weight bytes per cycle and SM that the framework's own kernels load for products with few rows, and at most with
    /// more rows; 0: all products use cuBLAS.
    double row_bytes_per_cycle = 0;
    /// Version (LibraryVersions::engine) from which decoding steps of one token per sequence are one CUDA graph;
    /// nullopt: kernels are launched individually.
    std::optional<int> captures_decoding_from{};
    /// Version from which small steps with prompts are CUDA graphs between one attention operator and the next.
    std::optional<int> captures_pieces_from{};
    int sums_by_itself_from = 0;  ///< version from which the engine's own all-reduce kernels replace NCCL
    /// Version from which the host schedules step n + 1 while the device computes step n.
    std::optional<int> schedules_ahead_from{};
    /// Versions whose sampler sorts the logits for top-k and top-p.
    std::optional<int> sorts_logits_from{}, sorts_logits_until{};
    /// From when on experts get their tokens by fewer kernels than those in MixtureParameters::floor_s.
    std::optional<int> sorts_experts_until{};
    /// The version whose experts with block scales compute whole tiles on Hopper, for each expert and each other card.
    std::optional<int> pads_experts_in{};
    std::optional<int> mixes_phases_from{};    ///< version from which prompts and decoding share a step
    std::optional<int> chunks_prompts_from{};  ///< version from which prompts are split over steps
    std::int64_t most_captured_sequences = 0;  ///< largest batch of such a graph
    int captures_from_capability_major = 0;    ///< lowest compute capability with graph capture
    /// Prompt tokens per pass; 0: unlimited.
    std::int64_t tokens_per_pass = 0;
    bool splits_prompts = false;         ///< prompts longer than a pass are split
    bool splits_tensors = true;          ///< supports tensor parallelism
    bool serves_sequences = false;       ///< each forward call schedules sequences and samples tokens
    double frontend_s = 0;               ///< see SchedulerOptions
    bool evicts_sequences = false;       ///< sequences out of memory wait while others run; else all start together
    bool synchronizes_runs = false;      ///< every run ends with a device synchronisation
    bool lays_out_convolutions = false;  ///< the compiler picks NHWC convolutions if faster
    bool engine = false;                 ///< all kernels are the engine's own; weights are reused once per pass
    bool captures_no_updates = false;    ///< models that mutate buffers run without CUDA graphs
    bool copies_inputs = false;          ///< each run copies its inputs into buffers of the graph
    std::optional<int> copies_weights_from{};  ///< PyTorch version from which weights are copied as well
    bool resizes_volumes_by_index = false;     ///< 5-D nearest-neighbour resizing uses indexing kernels
    bool joins_contrib_nodes = false;          ///< a com.microsoft node is one dispatch, regardless of its kernels
    std::span<const FusedAttention> fused_attention{};  ///< in order of the engine's preference
    std::optional<HostKind> host_kind{};  ///< the same host cost for all launches (compiled engine, CUDA graph)
    bool calls_experts = false;           ///< an engine's own operator launches all kernels of a layer's experts
    /// Version from which PyTorch dispatches the operators of a model's modules instead.
    std::optional<int> dispatches_from{};
};

/// Adapts a framework's traits to a device: on a CPU, convolutions fuse their bias.
[[nodiscard]] LoweringTraits traits_on(const DeviceSpec& device, LoweringTraits traits);

/// Lowers a graph to a schedule of launches and kernels. The graph must be in execution order. Throws Error{usage} if
/// the device lacks the precision or the library version is not modelled.
[[nodiscard]] Schedule lower(const Graph& graph, const DeviceSpec& device, const PredictOptions& options,
                             const LoweringTraits& traits);

/// Returns true if a framework keeps activations in NHWC.
[[nodiscard]] bool is_channels_last(const LoweringTraits& traits, Precision precision) noexcept;

}  // namespace ftax
