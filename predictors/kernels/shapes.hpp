#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <variant>

#include "ftax/precision.hpp"
#include "ftax/types.hpp"

namespace ftax {

/// Converts a count for formulas, which are in real numbers.
[[nodiscard]] constexpr double real(std::integral auto count) {
    return static_cast<double>(count);
}

}  // namespace ftax

/// Inputs of the kernel models: plain numbers that describe an operator for one binding of the graph's symbols, and the
/// kernel that the libraries take for it.
namespace ftax::kernels {

/// Returns true if all rows of a contiguous matrix start at multiples of `bytes`. Does not overflow.
constexpr bool is_aligned(std::int64_t row_length, int element_bytes, std::int64_t bytes) {
    return row_length % bytes * element_bytes % bytes == 0;
}

/// Library that chooses the kernel of a linear layer.
enum class BlasLibrary : std::uint8_t { cublas_lt, cublas };
inline constexpr std::int64_t no_cublas_lt_limit = std::numeric_limits<std::int64_t>::max();

[[nodiscard]] constexpr bool is_tensor(MathPath path) {
    return path == MathPath::tf32 || path == MathPath::fp16_tensor || path == MathPath::bf16_tensor ||
           path == MathPath::int8_tensor || path == MathPath::fp16_tensor_fp16_accumulate ||
           path == MathPath::fp8_tensor || path == MathPath::fp4_tensor;
}

/// batch × (m × k)·(k × n); row-major C, as in neusight_ops.csv: n is the number of output columns.
struct GemmShape {
    std::int64_t batch = 1, m = 1, n = 1, k = 1;
    int element_bytes = 4;
    bool linear = false;  ///< weight stationary (x·Wᵀ, cuBLAS "tn"); otherwise both operands are activations (bmm)
    BlasLibrary library = BlasLibrary::cublas_lt;  ///< for layers; cublasLt's kernels add the bias
    /// Layers with a bias and all dimensions below this use cublasLt; 0: none. Source: PyTorch 1.12,
    /// aten/src/ATen/native/cuda/Blas.cpp (addmm_out_cuda_impl), built for CUDA 11.4 or later.
    std::int64_t cublas_lt_limit = 65535;
    double weight_reuse_bytes =
        1e18;                     ///< bytes touched between two uses of the weights; default: weights come from DRAM
    bool older_library = false;   ///< cuBLAS before 12
    bool oldest_library = false;  ///< cuBLAS 11
    bool newest_library = false;  ///< cuBLAS 13, which PyTorch ships from 2.11 on
    bool engine = false;          ///< see MemoryShape
    bool separate_bias = false;   ///< the bias is first copied to the result, which the product then reads
    /// Weight bytes per cycle and SM that the framework's own kernels load for products with few rows, and at most with
    /// more rows; 0: all products use cuBLAS.
    double row_bytes_per_cycle = 0;
    bool dot_products = false;             ///< 8-bit products in blocks of 32 values (ggml), dp4a on CUDA cores
    bool scaled_outside = false;           ///< see GroupedGemmShape
    bool hides_promotion = false;          ///< one warpgroup scales sums while another one multiplies
    Precision operands = Precision::fp32;  ///< for quantised layers: precision that gives the formats of x and weight
    bool loads_ahead = false;              ///< row_bytes_per_cycle is reached where the memory sustains it
    friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

/// Returns the bytes of one weight of a product, and those of one of the values that it multiplies.
[[nodiscard]] inline double weight_bytes(const auto& product) {
    const PrecisionSpec& operands = precision_spec(product.operands);
    return operands.quantizes_weights() ? operands.weight_bytes() : product.element_bytes;
}
[[nodiscard]] inline double activation_bytes(const auto& product) {
    const PrecisionSpec& operands = precision_spec(product.operands);
    return operands.quantizes_weights() ? operands.activation_bytes() : product.element_bytes;
}

/// Library of the convolution kernels and its way to choose among them.
enum class ConvLibrary : std::uint8_t {
    cudnn_heuristic,   ///< PyTorch: the choice of cudnnGetConvolutionForwardAlgorithm_v7
    cudnn7_heuristic,  ///< the same, before cuDNN 8
    cudnn_timed,       ///< ONNX Runtime: the fastest kernel within the workspace, including split reductions
    tensorrt,          ///< TensorRT's own kernels, timed when the engine is built
};

struct ConvShape {
    std::int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
    std::int64_t in_depth = 1, in_height = 1, in_width = 1;  ///< depth is 1 except for 3-D convolutions
    std::int64_t out_depth = 1, out_height = 1, out_width = 1;
    std::int64_t kernel_d = 1, kernel_h = 1, kernel_w = 1;
    std::int64_t stride_d = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
    int element_bytes = 4;
    bool channels_last = false;
    bool transposed = false;
    bool older_library = false;            ///< cuDNN before 9
    Precision operands = Precision::fp32;  ///< see GemmShape
    ConvLibrary library = ConvLibrary::cudnn_heuristic;
    std::int64_t workspace_bytes = 0;  ///< workspace limit; 0: unlimited
    bool launches_groups = false;      ///< see LibraryBehaviour
    friend bool operator==(const ConvShape&, const ConvShape&) = default;
};

[[nodiscard]] inline bool is_depthwise(const ConvShape& s) {
    return s.groups > 1 && s.groups == s.in_channels;
}

/// Classes of memory-bound kernels; each has its own efficiency.
enum class MemoryClass : std::uint8_t {
    pointwise,       ///< cheap arithmetic: add, mul, relu, where, cast
    transcendental,  ///< exp, tanh, gelu, div, sigmoid…
    power,           ///< pow with an exponent other than 2, 3, ½ and their inverses
    copy,            ///< contiguous to contiguous, fill
    transpose,       ///< copy that changes the order of dimensions; also repeat, pad, roll
    reduce,
    softmax,
    layer_norm,  ///< also rms_norm
    batch_norm,  ///< inference: scale and shift per channel
    group_norm,  ///< also instance_norm, local_response_norm, batch norms of training
    pool,
    gather,  ///< embedding, index, gather, scatter
    concat,
    resize,
    sort,  ///< also cumulative scans
};
inline constexpr int memory_class_count = static_cast<int>(MemoryClass::sort) + 1;

/// Row-wise kernels of serving libraries for language models; each token is a row.
enum class TokenKernel : std::uint8_t { none, norm, rope, gated, gelu, add, embedding };

struct MemoryShape {
    MemoryClass cls = MemoryClass::pointwise;
    std::int64_t elements = 0;  ///< elements of the largest operand
    std::int64_t rows = 1;      ///< independent rows (softmax, norms, reductions); planes (batch norms; those a thread
                                ///< walks over in resize)
    std::int64_t row_length = 1;  ///< elements of a row, of a window (pool); output pixels of a plane (resize)
    std::int64_t read_bytes = 0;  ///< each operand once, broadcast operands unexpanded
    std::int64_t write_bytes = 0;
    int element_bytes = 4;
    bool engine = false;     ///< a kernel of an engine's builder
    bool vectorized = true;  ///< elementwise: operands are contiguous and of the result's type, or scalars; reduce:
                             ///< rows are long, or adjacent rows share a vector; in a prototype: of any operands
    TokenKernel token = TokenKernel::none;
    std::int64_t elements_per_wait = 0;  ///< row elements per memory latency of a block; 0: hidden by others
    int waits = 0;                       ///< memory latencies in sequence beyond those of an elementwise kernel
    std::int64_t accesses = 0;          ///< elements loaded and stored; 0, and in engines: footprint over element_bytes
    std::int64_t strided_elements = 0;  ///< elements whose neighbours in memory other threads read at other times
    bool indexed = false;               ///< pool: also writes the index of each maximum
    bool root_mean_square = false;      ///< layer_norm: rms_norm, without a mean
    int coordinates = 0;                ///< resize: output coordinates, one 64-bit division each; 0: within a plane
    friend bool operator==(const MemoryShape&, const MemoryShape&) = default;
};

/// Implementation of attention. `products`: llama.cpp without --flash-attn, two products and a softmax of f32 scores.
enum class AttentionPath : std::uint8_t { math, memory_efficient, flash, engine, products };

/// Kernels of path flash: of the generation (serving engines), `tensorrt_llm`'s on Hopper (with fp8 keys as the rows of
/// products, 8 to 32 query heads as columns), cuDNN's; portable ones of FlashAttention, llama.cpp, xformers.
enum class FlashLibrary : std::uint8_t { generation, tensorrt_llm, flashinfer, cudnn, flash1, flash2, ggml, xformers };

struct AttentionShape {
    std::int64_t batch = 1, heads = 1, q_length = 1, kv_length = 1, head_dim = 64;
    int element_bytes = 2;
    bool causal = false;
    AttentionPath path = AttentionPath::flash;
    std::int64_t kv_heads = 0;       ///< key and value heads; 0: same as `heads`
    bool paged = false;              ///< paged KV cache, to which the call appends new tokens
    std::int64_t decodes = 0;        ///< single-query sequences in the same call (continuous batching)
    std::int64_t decode_length = 0;  ///< keys of each such sequence
    bool whole_heads = false;        ///< path engine: one block per head, regardless of its length
    std::int64_t latent_width = 0;   ///< width of the latent vector that is a token's key and part of its value (MLA)
    FlashLibrary library = FlashLibrary::generation;
    std::int64_t window = 0;   ///< causal: sliding window in keys; 0: none
    double reuse_bytes = 0;    ///< bytes touched between two uses of cached keys; 0: those of the keys alone
    bool gathers = false;      ///< each query reads keys of its own, at most `window`
    std::int64_t selects = 0;  ///< an indexer: scores keys for all heads together and selects so many; 0: attention
    friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

/// Quantisation of rows × columns activations before a product: scales and narrow values.
struct QuantizeShape {
    std::int64_t rows = 1, columns = 1;
    Precision operands = Precision::fp8;
    bool by_expert = false;  ///< rows that are sorted by expert, in TensorRT-LLM's kernel for Hopper
    friend bool operator==(const QuantizeShape&, const QuantizeShape&) = default;
};

/// Rows of a tile of padded experts. Source: DeepGEMM, get_mk_alignment_for_contiguous_layout.
inline constexpr double padded_tile_rows = 128;

/// Rows of x sorted by expert, each multiplied with its expert's k × n weight.
struct GroupedGemmShape {
    std::int64_t experts = 1, per_token = 1;  ///< number of experts, total and per token
    std::int64_t rows = 1, n = 1, k = 1;      ///< rows: tokens × per_token
    int element_bytes = 2;
    Precision operands = Precision::fp32;  ///< see GemmShape
    double weight_reuse_bytes = 1e18;      ///< see GemmShape
    bool sorted = false;                   ///< one of two whose rows kernels of the engine's own route and sort
    bool scaled_outside = false;           ///< the kernel scales its sums outside of tensor cores that could
    bool in_fp4_cutlass = false;           ///< CUTLASS's kernel for nvfp4 on Blackwell
    bool fused = false;                    ///< TensorRT-LLM's own kernel for Blackwell, which activates its results
    bool prepared = false;      ///< the engine's kernels read tokens by index or rows that they have narrowed
    bool widens_apart = false;  ///< other warps widen weights than those that multiply
    bool in_marlin = false;     ///< Marlin's kernel for weights in 4 bits, with mma.sync on every chip
    bool is_mxfp4 = false;      ///< weights in mxfp4, and experts padded; values in mxfp8, but not in Marlin's kernel
    std::int64_t padding_cards = 0;  ///< cards whose experts' rows are computed in whole tiles; 0: none
    double padded = 0;               ///< these rows; 0: those that there are
    bool gated = false;              ///< kernels activate the results and quantise them
    friend bool operator==(const GroupedGemmShape&, const GroupedGemmShape&) = default;
};

/// Returns the equivalent batch of equal products, for devices without grouped kernels.
[[nodiscard]] inline GemmShape as_batch(const GroupedGemmShape& s) {
    const std::int64_t batch = s.rows < s.experts ? s.rows : s.experts;
    return {.batch = batch,
            .m = (s.rows - 1) / batch + 1,
            .n = s.n,
            .k = s.k,
            .element_bytes = s.element_bytes,
            .operands = s.operands};
}

/// Mixture of experts as one fused operator: routed tokens pass through layers of experts and are summed.
struct MixtureShape {
    std::int64_t tokens = 1, hidden = 1, width = 1, per_token = 1, experts = 1;
    bool gated = true;  ///< the first product computes two layers (SwiGLU)
    int element_bytes = 2;
    Precision operands = Precision::fp32;  ///< see GemmShape
    bool untuned_cutlass = false;          ///< FlashInfer's CUTLASS kernels without autotuning
    friend bool operator==(const MixtureShape&, const MixtureShape&) = default;
};

/// All steps of one recurrent layer and direction in one kernel.
struct RecurrentShape {
    std::int64_t steps = 1, batch = 1, hidden = 1, gates = 1;
    int element_bytes = 4;
    friend bool operator==(const RecurrentShape&, const RecurrentShape&) = default;
};

/// Returns the operations implied by the shape, regardless of the kernel; a multiply-add counts as two.
[[nodiscard]] inline double flops(const GemmShape& s) {
    return 2.0 * real(s.batch) * real(s.m) * real(s.n) * real(s.k);
}
[[nodiscard]] inline double flops(const ConvShape& s) {
    const double filters = real(s.in_channels) / real(s.groups) * real(s.kernel_d) * real(s.kernel_h) *
                           real(s.kernel_w) * real(s.out_channels);
    // Transposed convolutions are counted per input pixel, others per output pixel.
    const double pixels = s.transposed ? real(s.in_depth) * real(s.in_height) * real(s.in_width)
                                       : real(s.out_depth) * real(s.out_height) * real(s.out_width);
    return 2.0 * real(s.batch) * pixels * filters;
}
[[nodiscard]] inline double flops(const MemoryShape& s) {
    return real(s.elements);
}
/// Returns the cached elements per token and key head.
[[nodiscard]] inline double cached_elements(const AttentionShape& s) {
    return real(s.latent_width > 0 ? s.latent_width : 2 * s.head_dim);
}
/// Returns the largest number of keys that `queries` adjacent queries attend to together.
[[nodiscard]] inline double most_keys(const AttentionShape& s, double queries) {
    const auto keys = real(s.kv_length);
    return s.window > 0 ? std::min(keys, real(s.window) + queries - 1) : keys;
}
/// Returns the operations of both products; a causal mask halves those of the new tokens, a window limits the keys.
[[nodiscard]] inline double flops(const AttentionShape& s) {
    const auto queries = real(s.q_length);
    const double seen = std::min(real(s.kv_length) - (s.causal ? queries / 2 : 0), most_keys(s, 1));
    const double scores = real(s.batch) * queries * seen + real(s.decodes) * real(s.decode_length);
    return 4 * scores * real(s.heads) * real(s.head_dim);
}

[[nodiscard]] inline double flops(const QuantizeShape& s) {
    return 2.0 * real(s.rows) * real(s.columns);
}
[[nodiscard]] inline double flops(const GroupedGemmShape& s) {
    return 2.0 * real(s.rows) * real(s.n) * real(s.k);
}
[[nodiscard]] inline double flops(const MixtureShape& s) {
    return (s.gated ? 6.0 : 4.0) * real(s.tokens) * real(s.per_token) * real(s.hidden) * real(s.width);
}

[[nodiscard]] inline double flops(const RecurrentShape& s) {
    return 2.0 * real(s.steps) * real(s.batch) * real(s.gates) * real(s.hidden) * real(s.hidden);
}

}  // namespace ftax::kernels

namespace ftax {

using KernelShape =
    std::variant<kernels::GemmShape, kernels::ConvShape, kernels::MemoryShape, kernels::AttentionShape,
                 kernels::QuantizeShape, kernels::GroupedGemmShape, kernels::MixtureShape, kernels::RecurrentShape>;

/// Returns the precision of the weights that a kernel multiplies; fp32 if they are not quantised.
[[nodiscard]] inline Precision weight_precision(const KernelShape& shape) {
    return std::visit(
        []<class Shape>(const Shape& s) {
            if constexpr (requires { s.operands; } && !std::is_same_v<Shape, kernels::QuantizeShape>)
                return s.operands;
            else
                return Precision::fp32;
        },
        shape);
}

}  // namespace ftax
