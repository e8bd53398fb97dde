#pragma once

#include <optional>
#include <span>

#include "ftax/device.hpp"
#include "ftax/graph.hpp"
#include "ftax/predict.hpp"
#include "predictors/lowering/library_behaviour.hpp"
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
    Library library = Library::none;    ///< library of its version
    bool views_cost_host = true;        ///< reshape, transpose, slice … go through the dispatcher
    bool views_move_data = false;       ///< transposes and slices launch kernels
    bool module_calls = true;           ///< each nn.Module call costs host time
    bool separate_conv_bias = true;     ///< the bias of a convolution is a separate kernel
    bool concat_copies_tables = false;  ///< a concat of unequal parts first copies tables to the device
    bool skips_padding = false;         ///< nested tensors: padded tokens are not computed
    kernels::GemmShape gemm{};          ///< prototype of matrix products
    kernels::ConvShape conv{};          ///< prototype of convolutions; channels_last: in half precision
    /// Convolutions and matrix products accumulate fp16 in half precision, which doubles the rate on GeForce cards.
    bool half_accumulation = false;
    /// Activations are f32. Separate kernels convert operands of products with more than a few tokens.
    bool wide_activations = false;
    bool calls_engines = false;         ///< a run calls one engine, plus one after each graph break
    bool windows_stream = false;        ///< pooling and resizing kernels are bandwidth-bound; pooling stores no indices
    bool batched_matmul_copies = true;  ///< operands whose leading dimensions cannot be merged are copied first
    bool persistent_recurrences = true;  ///< a small recurrent layer is one kernel (PyTorch with cuDNN 8.2 and later)
    bool serves_sequences = false;       ///< each forward call schedules sequences and samples tokens
    bool synchronizes_runs = false;      ///< every run ends with a device synchronisation
    bool lays_out_convolutions = false;  ///< the compiler picks NHWC convolutions if faster
    int from_capability_major = 0;       ///< lower compute capabilities are refused (Triton: 7)
    bool engine = false;                 ///< all kernels are the engine's own; weights are reused once per pass
    bool captures_no_updates = false;    ///< models that mutate buffers run without CUDA graphs
    bool copies_inputs = false;          ///< each run copies its inputs into buffers of the graph
    bool copies_weights = false;         ///< and its weights, if the compiler turns them into inputs
    bool resizes_volumes_by_index = false;              ///< 5-D nearest-neighbour resizing uses indexing kernels
    bool joins_contrib_nodes = false;                   ///< a com.microsoft node is one dispatch, whatever its kernels
    std::span<const FusedAttention> fused_attention{};  ///< in order of the engine's preference
    std::optional<HostKind> host_kind{};  ///< the same host cost for all launches (compiled engine, CUDA graph)
    bool calls_experts = false;           ///< an engine's own operator launches all kernels of a layer's experts
};

/// Lowers a graph to a schedule of launches and kernels. The graph must be in execution order. Throws Error{usage} if
/// the device lacks the precision or the library version is not modelled.
[[nodiscard]] Schedule lower(const Graph& graph, const DeviceSpec& device, const PredictOptions& options,
                             const LoweringTraits& traits);

}  // namespace ftax
