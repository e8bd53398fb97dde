#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/types.hpp"

/// Description of a GPU generation as data: SM features, library kernels and the heuristics that choose among them
/// (data/architectures/NAME.json, which names the source of each number).
namespace ftax {

/// GPU generation, ordered by age; fitted ratios are shared within a generation.
enum class Architecture : std::uint8_t {
    cpu,
    maxwell,
    pascal,
    volta,
    turing,
    ampere,
    ada,
    hopper,
    blackwell,
    rtx_blackwell
};
/// Their names, in order: that of the file with each one's description.
inline constexpr auto architecture_names = std::to_array<std::string_view>(
    {"cpu", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell", "rtx-blackwell"});

[[nodiscard]] std::string_view name_of(Architecture architecture) noexcept;
[[nodiscard]] std::optional<Architecture> architecture_from_name(std::string_view name) noexcept;

/// Kind of main loop of a matrix-product kernel; determines its efficiency.
enum class MainLoop : std::uint8_t {
    wide,    ///< 64 outputs per thread
    vector,  ///< 64 outputs per thread, operands read 16 bytes at a time
    narrow,  ///< 16 outputs per thread
    sliced,  ///< groups of threads share the reduction ("sliced1x4")
    tensor,
};
inline constexpr int main_loop_count = 5;

/// Output tile of one thread block, in the order of cuBLAS kernel names: columns (n) first. Sizes are powers of two, so
/// multiplying by their inverses is exact.
struct GemmTile {
    std::string name;  ///< "128x64", "32x32 sliced"
    MainLoop loop = MainLoop::wide;
    double resident = 1;  ///< blocks per SM, limited by 65,536 registers and shared memory
    int columns_log2 = 0, rows_log2 = 0;
    double columns = 1, rows = 1, area = 1;
    double inverse_resident = 1;
    double inverse_columns = 1, inverse_rows = 1;
    double inverse_work = 1;     ///< 1 / (outputs · parts of the reduction computed in parallel)
    double idle_schedulers = 1;  ///< schedulers per warp of the block
    double share = 1;            ///< reached share of the main loop's rate; below 1 with few outputs per thread
};

/// Builds a tile and its derived fields from its sizes.
[[nodiscard]] GemmTile gemm_tile(std::string_view name, MainLoop loop, int columns_log2, int rows_log2, int threads,
                                 double resident);
void set_resident(GemmTile& tile, double resident) noexcept;

/// A tile that a library may choose, with its weight in the heuristic (predictors/kernels/gemm_heuristic.hpp).
struct GemmCandidate {
    GemmTile tile;
    double weight = 1;                       ///< preferred up to this multiple of the padded work of a tile of weight 1
    double wave_quantization_penalty = 0.5;  ///< share of the last wave's idle slots that counts as work
    double most_rows = std::numeric_limits<double>::infinity();  ///< largest number of rows for which it is chosen
};

/// The kernels of one library for one kind of matrix product; empty if it has none of its own.
struct GemmCatalogue {
    std::vector<GemmCandidate> candidates;
    double split_penalty = 1;  ///< work of a split reduction relative to an unsplit one
    double most_parts = 64;    ///< largest number of parts of a reduction on tensor cores
    bool by_time = false;      ///< choose the fastest tile, not the tile of least padded work
};

/// Tile of a convolution: rows, columns and threads per block.
struct ConvTile {
    int rows = 0, columns = 0, threads = 0;
};

/// Tile of a fused attention kernel: largest head width, query rows, keys per step of its loop.
struct AttentionTile {
    double head = 0, rows = 0, keys = 0;
};

/// Fused attention kernels on tensor cores; no tiles if the generation has none.
struct AttentionKernels {
    double mma_share = 1;                     ///< rate of their instructions relative to the tensor-core peak
    double exponential_ratio = 1;             ///< exposed softmax cycles relative to one exponential unit; 0: hidden
    bool asynchronous = false;                ///< warp groups compute products while others compute the softmax
    bool packs_query_heads = false;           ///< query heads that share a key head are packed into one tile
    std::vector<AttentionTile> dense;         ///< keys and values as tensors, by head size
    std::vector<AttentionTile> paged;         ///< keys and values in a paged cache
    double decode_rows = 0, decode_keys = 0;  ///< tile for a single query
};

/// How a library quantises activations before a product.
struct Quantizer {
    double launches = 1;  ///< number of kernels, run in sequence
    double rows = 0;      ///< rows processed at a time regardless of the number of SMs; 0: as many as the SMs hold
    double columns = 0;   ///< columns of a row that one warp processes; only if `rows` is set
};

/// Kernels for quantised experts relative to 16-bit ones.
struct ExpertKernels {
    double efficiency = 1, dram_share = 1, fill = 1;
};

/// One generation, or one chip of it that differs.
struct ArchitectureSpec {
    Architecture architecture = Architecture::turing;
    std::vector<Architecture> kin;  ///< generations whose fitted values are used where it has none, nearest first
    int schedulers_per_sm = 4;
    bool asynchronous_copies = false;     ///< cp.async: 4-byte-aligned operands keep the main loop fed
    int main_loop_stages = 1;             ///< prefetch depth of tensor-core kernels relative to Ampere and earlier
    bool integer_shares_lanes = false;    ///< half of the f32 lanes also execute integer and address arithmetic
    double integer_product_ratio = 1;     ///< time of integer arithmetic with 32-bit products; 1 from Volta on
    bool has_large_l2 = false;            ///< unified L2 of 24 MB and more, unlike the split L2 of A100 and H100
    bool tf32_at_boost = false;           ///< the power limit does not slow TF32 products, see power.hpp
    bool cta_skew = false;                ///< CTAs that share operands drift apart, see gemm_traffic.hpp
    bool pointwise_through_blas = false;  ///< cuDNN hands f32 1×1 convolutions at batch 1 to cuBLAS
    bool has_sgemm_largek = false;        ///< cublasLt 13 may run f32 layers in sgemm_largek, see gemm.hpp
    int gemv_rows = 1;                    ///< f32 layers with up to this many rows run as matrix-vector products
    /// Gap beyond the floor between the end of a kernel and the start of the next one, in a stream and in a CUDA graph.
    /// nullopt: the gap of the framework's profile; the floor fitted to whole models then contains the rest.
    std::optional<double> stream_gap_s, graph_gap_s;
    [[nodiscard]] bool has_measured_gaps() const { return stream_gap_s.has_value(); }
    double dram_share = 0.9;              ///< sustained share of the datasheet's memory bandwidth, without inline ECC
    double conv_share = 1;                ///< rate of cuDNN's 2-D tensor-core convolutions relative to other chips
    double gemm_latency_share = 1;        ///< latency of f32 main loops relative to loops without asynchronous copies
    double f32_share = 1;                 ///< sustained share of the datasheet's f32 rate in matrix products
    double f32_share_consumer = 1;        ///< f32_share for GeForce and Titan, whose clocks exceed the stated boost
    double f32_energy_per_flop_j = 0;     ///< at boost clock, in excess of the idle draw
    double tensor_energy_ratio = 0.12;    ///< energy of an f16 tensor-core operation relative to an f32 one
    double tensor_energy_per_flop_j = 0;  ///< f16, whole board at its power limit
    double narrow_energy_ratio = 0.5;     ///< energy of an operation on at most 8 bits relative to an f16 one
    double tensor_ops_per_cycle = 0;      ///< f16 tensor-core operations of an SM, dense; 0: not stated
    double operand_sharing = 1;           ///< blocks served by one L2 read: multicast, SM pairs
    double step_cycles = 0;               ///< least cycles of 64 values of k in a product's main loop
    GemmCatalogue layers;                 ///< x·Wᵀ through cublasLt
    GemmCatalogue layers_without_lt;      ///< x·Wᵀ through cuBLAS, if its kernels differ
    GemmCatalogue batched;                ///< strided batches
    GemmCatalogue tensor;                 ///< on tensor cores
    AttentionKernels attention;           ///< kernels written for this generation
    AttentionKernels flash2;              ///< FlashAttention 2, which PyTorch runs on all generations
    std::array<GemmCatalogue, quantized_kernels_count> quantized;  ///< quantised operands, by kernel family
    std::array<Quantizer, quantized_kernels_count> quantizers;     ///< kernels before these products
    bool scales_on_tensor_cores = false;                           ///< tensor cores apply the block scales of operands
    ExpertKernels untuned_experts;         ///< quantised experts in FlashInfer's CUTLASS kernels without autotuner
    std::vector<ConvTile> winograd_tiles;  ///< tiles of the products of the non-fused Winograd algorithm
    int winograd_mosaics = 0;              ///< image mosaics of the fused kernel, see winograd_fused_blocks
    bool cudnn7_names_nonfused = false;    ///< cuDNN 7 runs few-channel 3×3 filters non-fused, see conv.hpp
};

/// Returns the description of the chip with that compute capability.
/// Throws Error{profile} for a generation without a file.
[[nodiscard]] const ArchitectureSpec& architecture_spec(Architecture architecture, int compute_capability_major,
                                                        int compute_capability_minor);

}  // namespace ftax
