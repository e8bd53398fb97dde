#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "ftax/framework.hpp"
#include "ftax/graph.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax {

enum class KernelClass : std::uint8_t { gemm, conv, memory, attention, quantize, grouped_gemm, recurrent };

/// Condition for launching a kernel: eager frameworks copy only if a view cannot express the result, which depends on
/// the bound shapes (batch 1 lets more dimensions merge than batch 2).
enum class LaunchCondition : std::uint8_t {
    always,
    unless_viewable,      ///< a reshape of `reads[0]` to the shape of `writes[0]` needs a copy
    unless_batch_merges,  ///< the leading dimensions of `reads[0]` cannot become one batch dimension (torch.matmul)
    unless_contiguous,    ///< `reads[0]` is not contiguous and the operator requires it
    unless_in_format_of_result,  ///< `reads[0]` is not dense in the memory format (NCHW or NHWC) of the result
    within_longest,              ///< the attention's sequence is at most `longest`
    beyond_longest,
    beyond_few_rows,  ///< the result has more than few_rows rows
};

/// Largest number of rows for llama.cpp's matrix-vector kernels. Source: llama.cpp, MMVQ_MAX_BATCH_SIZE.
inline constexpr std::int64_t few_rows = 8;

/// Part of an operator that a kernel computes, if there are several.
enum class OperatorPart : std::uint8_t {
    whole,
    scores,  ///< attention: scores
    softmax,
    values,
    input_products,        ///< recurrence: input product of the first layer, all steps at once
    later_input_products,  ///< the same for each later layer
    state_product,         ///< product with the state, per step, layer and direction
    state_update,          ///< gates and new state
    steps,                 ///< all steps of each layer and direction in one kernel
};

inline constexpr std::int64_t no_cublas_lt_limit = std::numeric_limits<std::int64_t>::max();

/// One kernel, with the model that times it and the tensors that it touches. Dimensions are read when shapes are bound.
struct Kernel {
    KernelClass cls = KernelClass::memory;
    kernels::MemoryClass memory_class = kernels::MemoryClass::pointwise;
    MathPath path = MathPath::fp32;
    LaunchCondition condition = LaunchCondition::always;
    kernels::ConvLibrary conv_library = kernels::ConvLibrary::cudnn_heuristic;
    std::int64_t conv_workspace_bytes = 0;  ///< workspace limit of a convolution; 0: unlimited
    /// Linear layers with bias and all dimensions below this use cublasLt; 0: none.
    std::int64_t cublas_lt_limit = 0;
    bool older_blas = false;               ///< see kernels::GemmShape and ConvShape
    int torch = 0;                         ///< PyTorch version whose own kernels run, see LibraryVersions
    bool cudnn_attention = false;          ///< attention in half precision runs cuDNN's kernel
    double row_bytes_per_cycle = 0;        ///< see LoweringTraits
    Precision operands = Precision::fp32;  ///< see kernels::GemmShape
    bool engine = false;                   ///< see kernels::MemoryShape
    bool whole_heads = false;              ///< see kernels::AttentionShape
    bool divides_coordinates = false;      ///< resize: each output coordinate takes a division
    OperatorPart part = OperatorPart::whole;
    std::int64_t longest = 0;       ///< see LaunchCondition
    bool dot_products = false;      ///< see kernels::GemmShape
    bool wide_activations = false;  ///< see LoweringTraits
    bool sorts_experts = false;     ///< see kernels::GroupedGemmShape
    bool pads_experts = false;      ///< see LoweringTraits
    bool lookup = false;            ///< reads looked_up_elements() of the table reads[0]
    OpId op = no_op;                ///< operator with the dimensions and attributes of a contraction
    std::vector<TensorId> reads, writes;
    std::optional<DType> written_type{};  ///< type of `writes` if not the storage type: casts, attention
};

/// Whether dispatching an operator queries the cuBLAS heuristic, which is slow on some hosts.
enum class BlasCall : std::uint8_t {
    never,
    always,        ///< torch.nn.Linear: cublasLtMatmulAlgoGetHeuristic on every call
    at_batch_one,  ///< cuDNN hands batch-1 pointwise convolutions to cuBLAS
};

/// One host operation: dispatch of an operator (with its kernels), a view, a module call, a synchronisation.
struct Launch {
    OpId op = no_op;
    HostKind host_kind = HostKind::elementwise;
    std::uint32_t first_kernel = 0;
    std::uint32_t kernel_count = 0;
    std::uint32_t module_calls = 0;  ///< nn.Module calls that begin just before it
    std::uint32_t list_parts = 0;    ///< tensors of its list argument
    BlasCall blas_call = BlasCall::never;
    std::uint32_t further_calls = 0;   ///< further launches of the same dispatch
    bool on_host = false;              ///< runs on the CPU, since no CUDA kernel exists
    std::vector<TensorId> crossing{};  ///< tensors copied between host and device for it
};

/// Execution of a graph by one framework, in the order of the host's work. Independent of the bound shapes.
struct Schedule {
    std::vector<Launch> launches;
    std::vector<Kernel> kernels;
    double weight_bytes = 0;     ///< all weights: traffic between two uses of one weight
    std::vector<DType> storage;  ///< element type of every tensor under the run's precision
};

}  // namespace ftax
