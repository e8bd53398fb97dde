#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/types.hpp"

/// What a generation of GPUs has, as data: features of its SM, the kernels of its libraries and how these choose among
/// them (data/architectures/NAME.json, where each number names its source).
namespace ftax {

/// Generation of GPUs, ordered by age: the level at which fitted ratios are shared.
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

[[nodiscard]] std::string_view name_of(Architecture architecture) noexcept;
[[nodiscard]] std::optional<Architecture> architecture_from_name(std::string_view name) noexcept;

/// How a matrix-product kernel computes: decides the efficiency of its main loop.
enum class MainLoop : std::uint8_t {
    wide,    ///< 64 outputs per thread
    vector,  ///< 64 outputs per thread, operands read 16 bytes at a time
    narrow,  ///< 16 outputs per thread
    sliced,  ///< groups of threads share the reduction ("sliced1x4")
    tensor,
};
inline constexpr int main_loop_count = 5;

/// Output tile of one thread block, in the order of cuBLAS's kernel names: columns (n) first. Sizes are powers of two:
/// multiplying by their inverses is exact.
struct GemmTile {
    std::string name;  ///< "128x64", "32x32 sliced"
    MainLoop loop = MainLoop::wide;
    double resident = 1;  ///< blocks an SM holds: 65,536 registers and its shared memory
    int columns_log2 = 0, rows_log2 = 0;
    double columns = 1, rows = 1, area = 1;
    double inverse_resident = 1;
    double inverse_columns = 1, inverse_rows = 1;
    double inverse_work = 1;     ///< 1 / (outputs · parts of the reduction computed side by side)
    double idle_schedulers = 1;  ///< schedulers per warp of the block
};

/// Fills in what follows from a tile's sizes.
[[nodiscard]] GemmTile gemm_tile(std::string_view name, MainLoop loop, int columns_log2, int rows_log2, int threads,
                                 double resident);
void set_resident(GemmTile& tile, double resident) noexcept;

/// A tile that a library may choose, and how its heuristic weighs it (predictors/kernels/gemm_heuristic.hpp).
struct GemmCandidate {
    GemmTile tile;
    double weight = 1;                       ///< padded work it may have for as much of a tile of weight 1
    double wave_quantization_penalty = 0.5;  ///< share of the slots idle in the last wave that counts as work
    double most_rows = std::numeric_limits<double>::infinity();  ///< of products that it is taken for
};

/// The kernels of one library for one kind of matrix product; empty where it has none of its own.
struct GemmCatalogue {
    std::vector<GemmCandidate> candidates;
    double split_penalty = 1;  ///< work of a split reduction against that of a whole one
    double most_parts = 64;    ///< of a reduction on tensor cores
};

/// Blocks, threads and sizes of a convolution's tile.
struct ConvTile {
    int rows = 0, columns = 0, threads = 0;
};

/// Tile of a fused attention kernel: heads up to so many elements, rows of queries, keys of one step of its loop.
struct AttentionTile {
    double head = 0, rows = 0, keys = 0;
};

/// Fused attention kernels on tensor cores; without tiles where the generation has none.
struct AttentionKernels {
    double mma_share = 1;                     ///< rate of the instructions that they use against the tensor cores''
    bool hides_exponentials = false;          ///< those instructions are so slow that the softmax runs beside them
    bool asynchronous = false;                ///< groups of warps compute products beside the softmax of other tiles
    bool packs_query_heads = false;           ///< heads of queries that share one of keys fill tiles together
    std::vector<AttentionTile> dense;         ///< keys and values as tensors, by head size
    std::vector<AttentionTile> paged;         ///< keys and values in blocks of a cache
    double decode_rows = 0, decode_keys = 0;  ///< the tile of a single query
};

/// How a library quantises activations in front of a product.
struct Quantizer {
    double launches = 1;  ///< kernels, one after the other
    double rows = 0;      ///< that it has in work at once, however many SMs there are; 0: what they hold
    double columns = 0;   ///< of a row that one warp then does
};

/// Kernels for quantised experts against those for 16 bits.
struct ExpertKernels {
    double efficiency = 1, dram_share = 1, fill = 1;
};

/// One generation, or one chip of it where that differs.
struct ArchitectureSpec {
    Architecture architecture = Architecture::turing;
    std::vector<Architecture> kin;  ///< whose fitted values stand in where it has none, nearest first
    int schedulers_per_sm = 4;
    bool asynchronous_copies = false;     ///< cp.async: operands of 4 bytes' alignment keep the main loop fed
    int main_loop_stages = 1;             ///< steps that tensor-core kernels load ahead, against Ampere and before
    bool integer_shares_lanes = false;    ///< half of the f32 lanes also do integer and address arithmetic
    double integer_product_ratio = 1;     ///< time of integer arithmetic with 32-bit products, Volta's and later: 1
    bool cta_skew = false;                ///< CTAs that share operands run with growing skew, see gemm_traffic.hpp
    bool pointwise_through_blas = false;  ///< cuDNN hands f32 1×1 convolutions at batch 1 to cuBLAS
    int gemv_rows = 1;                    ///< f32 layers of so many rows run as matrix-vector products
    double dram_share = 0.9;              ///< sustained share of the datasheet's memory bandwidth, without inline ECC
    double f32_share = 1;                 ///< sustained share of the datasheet's f32 rate in matrix products
    double f32_share_consumer = 1;        ///< likewise for GeForce and Titan cards, whose clocks exceed their boost
    double f32_energy_per_flop_j = 0;     ///< at boost clock, beyond what the board draws anyway
    double tensor_energy_ratio = 0.12;    ///< energy of a tensor core's f16 operation against it
    double tensor_energy_per_flop_j = 0;  ///< of a board at its power limit, everything included, f16
    double operand_sharing = 1;           ///< blocks that one read of the L2 feeds: multicast, pairs of SMs
    GemmCatalogue layers;                 ///< x·Wᵀ through cublasLt
    GemmCatalogue layers_without_lt;      ///< x·Wᵀ through cuBLAS itself, where it has kernels of its own
    GemmCatalogue batched;                ///< strided batches
    GemmCatalogue tensor;                 ///< on tensor cores
    AttentionKernels attention;           ///< made for the generation
    AttentionKernels flash2;              ///< FlashAttention 2, which PyTorch runs on all
    std::array<GemmCatalogue, quantized_kernels_count> quantized;  ///< of quantised operands, by family of kernels
    std::array<Quantizer, quantized_kernels_count> quantizers;     ///< in front of them
    bool scales_on_tensor_cores = false;                           ///< of blocks of operands
    ExpertKernels untuned_experts;         ///< quantised, by FlashInfer's CUTLASS kernels without their autotuner
    std::vector<ConvTile> winograd_tiles;  ///< of the products inside the non-fused Winograd algorithm
    int winograd_mosaics = 0;  ///< ways in which the fused kernel lays images side by side, see winograd_fused_blocks
    bool cudnn7_names_nonfused = false;  ///< for 3×3 filters of few channels, see conv.hpp
};

/// Returns the chip of that compute capability.
/// Throws Error{profile} for a generation without a file.
[[nodiscard]] const ArchitectureSpec& architecture_spec(Architecture architecture, int compute_capability_major,
                                                        int compute_capability_minor);

}  // namespace ftax
