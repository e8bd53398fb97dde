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

/// When a kernel is launched at all: eager frameworks copy only what a view cannot express, and that depends on the
/// bound shapes (with batch 1 more dimensions can be merged than with batch 2).
enum class LaunchCondition : std::uint8_t {
    always,
    unless_viewable,      ///< a reshape of `reads[0]` to the shape of `writes[0]` needs a copy
    unless_batch_merges,  ///< the leading dimensions of `reads[0]` cannot become one batch dimension (torch.matmul)
    unless_contiguous,    ///< `reads[0]` is not contiguous and the operator insists on it
    unless_in_format_of_result,  ///< `reads[0]` is not dense in the memory format (NCHW or NHWC) of the result
    within_longest,              ///< the attention's sequence is at most `longest`
    beyond_longest,
    beyond_few_rows,  ///< the result has more than few_rows rows
};

/// Rows of a product that llama.cpp's kernels take. Source: llama.cpp, MMVQ_MAX_BATCH_SIZE.
inline constexpr std::int64_t few_rows = 8;

/// Which part of an operator a kernel does, where it has several.
enum class OperatorPart : std::uint8_t {
    whole,
    scores,  ///< of an attention
    softmax,
    values,
    input_products,        ///< of a recurrence: the first layer's input with its weights, all steps at once
    later_input_products,  ///< the same of each layer behind it
    state_product,         ///< of each step of each layer and direction
    state_update,          ///< its gates and the new state
    steps,                 ///< all steps of each layer and direction in one kernel
};

inline constexpr std::int64_t no_cublas_lt_limit = std::numeric_limits<std::int64_t>::max();

/// One kernel: which model times it and which tensors it touches. Dimensions are read when shapes are bound.
struct Kernel {
    KernelClass cls = KernelClass::memory;
    kernels::MemoryClass memory_class = kernels::MemoryClass::pointwise;
    MathPath path = MathPath::fp32;
    LaunchCondition condition = LaunchCondition::always;
    bool fused_layout = false;  ///< see kernels::ConvShape
    kernels::ConvLibrary conv_library = kernels::ConvLibrary::cudnn_heuristic;
    std::int64_t conv_workspace_bytes = 0;  ///< what a convolution may allocate; 0: any
    /// A layer with a bias and smaller dimensions goes through cublasLt; 0: none does.
    std::int64_t cublas_lt_limit = 0;
    bool older_blas = false;               ///< see kernels::GemmShape
    bool flash1 = false;                   ///< see kernels::AttentionShape
    double row_bytes_per_cycle = 0;        ///< likewise
    Precision operands = Precision::fp32;  ///< see kernels::GemmShape
    bool engine = false;                   ///< see kernels::MemoryShape
    bool whole_heads = false;              ///< see kernels::AttentionShape
    bool divides_coordinates = false;      ///< a resize whose threads find each coordinate of an output by division
    OperatorPart part = OperatorPart::whole;
    std::int64_t longest = 0;       ///< see LaunchCondition
    bool dot_products = false;      ///< see kernels::GemmShape
    bool wide_activations = false;  ///< see LoweringTraits
    bool lookup = false;            ///< reads[0] is a table of which looked_up_elements() are read
    OpId op = no_op;                ///< whose dimensions and attributes a contraction takes
    std::vector<TensorId> reads, writes;
    std::optional<DType> written_type{};  ///< of `writes`, where they are kept in another: a cast, or attention
};

/// Whether dispatching an operator goes through the BLAS library, whose heuristic query is slow on some hosts.
enum class BlasCall : std::uint8_t {
    never,
    always,        ///< torch.nn.Linear: cublasLtMatmulAlgoGetHeuristic on every call
    at_batch_one,  ///< cuDNN hands a pointwise convolution over one image to cuBLAS
};

/// One thing the host does: dispatching an operator (with its kernels), a view, a module call, a synchronisation.
struct Launch {
    OpId op = no_op;
    HostKind host_kind = HostKind::elementwise;
    std::uint32_t first_kernel = 0;
    std::uint32_t kernel_count = 0;
    std::uint32_t module_calls = 0;  ///< nn.Module calls that begin right before it
    std::uint32_t list_parts = 0;    ///< tensors of the list it takes
    BlasCall blas_call = BlasCall::never;
    std::uint32_t further_calls = 0;   ///< launches of the same dispatch beyond its first
    bool on_host = false;              ///< the CPU computes the operator, for want of a kernel
    std::vector<TensorId> crossing{};  ///< what is copied between host and device for it
};

/// What one framework does with a graph, in the order in which the host does it. Independent of the bound shapes.
struct Schedule {
    std::vector<Launch> launches;
    std::vector<Kernel> kernels;
    double weight_bytes = 0;     ///< of all weights: a forward pass touches them before it comes back to one
    std::vector<DType> storage;  ///< element type of every tensor under the run's precision
};

}  // namespace ftax
