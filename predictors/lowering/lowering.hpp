#pragma once

#include <optional>
#include <span>

#include "ftax/device.hpp"
#include "ftax/graph.hpp"
#include "ftax/predict.hpp"
#include "predictors/timeline/schedule.hpp"

namespace ftax {

/// An attention kernel of an engine's builder: for which versions, chips and shapes it exists.
struct FusedAttention {
    int from_version = 0, below_version = 0;      ///< 100 · major + minor; 0: no limit
    int least_chip = 0, greatest_chip = 0;        ///< 10 · compute capability
    int least_head = 0, greatest_head = 0, step;  ///< head widths, `step` apart
    std::int64_t longest = 0;                     ///< sequence; 0: any
    bool whole_heads = false;                     ///< one block does a head, however long its sequence
    DType type = DType::f16;                      ///< of queries, keys and values; f16 stands for bf16 too
};

/// How a framework executes the operators of a (rewritten) graph one after another.
struct LoweringTraits {
    bool views_cost_host = true;        ///< reshape, transpose, slice … pass through the dispatcher
    bool views_move_data = false;       ///< transposes and slices are kernels, not changed strides
    bool module_calls = true;           ///< each nn.Module call costs host time
    bool separate_conv_bias = true;     ///< a convolution's bias is a second kernel over its output
    bool concat_copies_tables = false;  ///< a concat of unequal parts copies tables to the device first
    bool skips_padding = false;         ///< nested tensors: padded tokens are not computed
    kernels::ConvLibrary conv_library = kernels::ConvLibrary::cudnn_heuristic;
    /// Convolutions sum halves in half precision, twice as fast on GeForce cards; products do not. Source:
    /// framework_tax.csv and framework_tax_more.csv, Torch-TensorRT on an RTX 2080 Ti and a 3090; kernl's BERT on a
    /// 3090.
    bool half_accumulation = false;
    /// Compute capability, times ten, from which quantised weights are multiplied by dp4a where there are no tensor
    /// cores; 0: never.
    int dot_products_from = 0;
    bool half_products = false;  ///< products sum halves too
    /// Activations are f32. Products of more than few_rows tokens are the BLAS library's, in f16: kernels around them
    /// convert, quantised weights are widened first. Attention stores its scores.
    bool wide_activations = false;
    bool calls_engines = false;   ///< a run calls an engine, and another behind each split, which runs outside
    bool channels_last = false;   ///< the engine keeps half-precision activations in NHWC
    bool windows_stream = false;  ///< kernels that pool or resize run at memory speed; pooling keeps no indices
    std::int64_t conv_workspace_bytes = 0;  ///< what a convolution may allocate; 0: any
    /// A layer with a bias and smaller dimensions goes through cublasLt; 0: none does. Source: PyTorch 1.12,
    /// aten/src/ATen/native/cuda/Blas.cpp (addmm_out_cuda_impl), built for CUDA 11.4 or later.
    std::int64_t cublas_lt_limit = 65535;
    bool batched_matmul_copies = true;   ///< operands whose leading dimensions do not merge are copied first
    bool persistent_recurrences = true;  ///< a small recurrent layer is one kernel (PyTorch with cuDNN 8.2 and later)
    /// Bytes of the weights that an SM loads in a cycle in the framework's own kernels for products of few rows, and at
    /// best in those of more; 0: the BLAS library has them all.
    double row_bytes_per_cycle = 0;
    /// From this version on (LibraryVersions::engine) steps of one token for each sequence are one CUDA graph;
    /// nullopt: kernels are launched one by one.
    std::optional<int> captures_decoding_from{};
    int sums_by_itself_from = 0;  ///< version from which sums over cards are kernels of the engine's own, not NCCL's
    /// Version from which the host schedules step n + 1 while the device computes step n.
    std::optional<int> schedules_ahead_from{};
    /// Versions whose sampler sorts the logits for top-k and top-p.
    std::optional<int> sorts_logits_from{}, sorts_logits_until{};
    std::optional<int> mixes_phases_from{};    ///< version from which one step holds prompts and decoding sequences
    std::optional<int> chunks_prompts_from{};  ///< version from which the scheduler splits prompts over steps
    std::int64_t most_captured_sequences = 0;  ///< that such a graph serves
    int captures_from_capability_major = 0;    ///< devices below this compute capability are not captured
    /// Tokens of prompts that one pass takes in; 0: all prompts at once.
    std::int64_t tokens_per_pass = 0;
    bool splits_prompts = false;         ///< also those that alone are longer than a pass
    bool splits_tensors = true;          ///< cards of one machine can share each layer
    bool serves_sequences = false;       ///< each forward call takes sequences from a scheduler and samples tokens
    double frontend_s = 0;               ///< see SchedulerOptions
    bool evicts_sequences = false;       ///< others run on while a sequence waits for memory, else all begin together
    bool synchronizes_runs = false;      ///< every run ends by waiting for the device
    bool lays_out_convolutions = false;  ///< a compiler runs them on NHWC data where that pays
    bool engine = false;                 ///< all kernels are the engine's own, weights come back once a pass
    bool captures_no_updates = false;    ///< a model whose run changes its buffers is dispatched instead
    bool copies_inputs = false;          ///< a graph reads its inputs from its own buffers, where each run copies them
    std::optional<int> copies_weights_from{};  ///< version of PyTorch from which it does so with weights
    bool resizes_volumes_by_index = false;     ///< nearest neighbours in five dimensions have no kernel of their own
    bool joins_contrib_nodes = false;  ///< a com.microsoft node is one dispatch, however many kernels it launches
    std::span<const FusedAttention> fused_attention{};  ///< in the order in which the engine prefers them
    std::optional<HostKind> host_kind{};  ///< one host cost for everything (a compiled engine, a CUDA graph)
};

/// How a framework executes operators on a device: on a CPU a convolution adds its own bias.
[[nodiscard]] LoweringTraits traits_on(const DeviceSpec& device, LoweringTraits traits);

/// Turns a graph into the schedule of launches and kernels. The graph must be in execution order.
/// Throws Error{usage} when the device lacks the precision, or for a library version that is not modelled.
[[nodiscard]] Schedule lower(const Graph& graph, const DeviceSpec& device, const PredictOptions& options,
                             const LoweringTraits& traits);

/// Whether a framework keeps the activations of a run in NHWC.
[[nodiscard]] bool is_channels_last(const LoweringTraits& traits, Precision precision) noexcept;

}  // namespace ftax
