#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "ftax/device.hpp"
#include "ftax/types.hpp"

/// The kernels that cuBLAS chooses between for a matrix product.
namespace ftax::kernels {

/// How a kernel computes: decides the efficiency of its main loop.
enum class GemmLoop : std::uint8_t {
    wide,    ///< 64 outputs per thread
    vector,  ///< 64 outputs per thread, operands read 16 bytes at a time
    narrow,  ///< 16 outputs per thread
    sliced,  ///< groups of threads share the reduction ("sliced1x4")
    tensor,
};
inline constexpr int gemm_loop_count = 5;

/// Output tile of one thread block, in the order of cuBLAS's kernel names: columns (n) first. Sizes are powers of two.
struct GemmTile {
    std::string_view name{};
    GemmLoop loop = GemmLoop::wide;
    double resident = 1;  ///< blocks an SM holds: 65,536 registers and its shared memory
    int columns_log2 = 0, rows_log2 = 0;
    double columns = 1, rows = 1, area = 1;
    double inverse_resident = 1;
    double inverse_columns = 1, inverse_rows = 1;
    double inverse_work = 1;     ///< 1 / outputs · parts of the reduction computed side by side
    double idle_schedulers = 1;  ///< schedulers per warp of the block
};

[[nodiscard]] constexpr GemmTile gemm_tile(std::string_view name, GemmLoop loop, int columns_log2, int rows_log2,
                                           int threads, double resident) {
    const double columns = 1 << columns_log2;
    const double rows = 1 << rows_log2;
    const double slices = loop == GemmLoop::sliced ? 4 : 1;
    return {name,           loop,           resident,       columns_log2,  rows_log2,  columns,
            rows,           columns * rows, 1.0 / resident, 1.0 / columns, 1.0 / rows, 1.0 / (columns * rows * slices),
            128.0 / threads};
}

/// CUDA-core kernels, f32. Source: names and block sizes in neusight_ops.csv (maxwell_sgemm_…, volta_sgemm_…,
/// ampere_sgemm_…); resident blocks from registers: 64 outputs a thread need about 128 of them.
namespace sgemm {
inline constexpr GemmTile t128x128 = gemm_tile("128x128", GemmLoop::wide, 7, 7, 256, 2);
inline constexpr GemmTile t128x64 = gemm_tile("128x64", GemmLoop::wide, 7, 6, 128, 4);
inline constexpr GemmTile t64x64 = gemm_tile("64x64", GemmLoop::wide, 6, 6, 64, 8);
/// Of these a GP100's SM holds seven: with eight its cuBLAS would take others. Source: kernel and grid columns of a
/// P100.
inline constexpr GemmTile t64x64_gp100 = gemm_tile("64x64", GemmLoop::wide, 6, 6, 64, 7);
inline constexpr GemmTile t32x128 = gemm_tile("32x128", GemmLoop::narrow, 5, 7, 256, 4);
inline constexpr GemmTile t128x32 = gemm_tile("128x32", GemmLoop::narrow, 7, 5, 256, 4);
inline constexpr GemmTile t32x32 = gemm_tile("32x32 sliced", GemmLoop::sliced, 5, 5, 128, 4);
inline constexpr GemmTile t64x32 = gemm_tile("64x32 sliced", GemmLoop::sliced, 6, 5, 256, 4);
inline constexpr GemmTile t128x32_sliced = gemm_tile("128x32 sliced", GemmLoop::sliced, 7, 5, 256, 4);
/// In full sgemm_128x128x8_NT_vec, see choose_without_lt.
inline constexpr GemmTile t128x128x8 = gemm_tile("128x128x8", GemmLoop::vector, 7, 7, 256, 2);
inline constexpr std::array<GemmTile, 9> all = {t128x128, t128x64, t64x64,         t32x128,   t128x32,
                                                t32x32,   t64x32,  t128x32_sliced, t128x128x8};
/// No tile of a product at all: each block streams its share of the weights once past the few rows of the input.
inline constexpr GemmTile gemv = gemm_tile("gemv", GemmLoop::wide, 7, 4, 128, 8);
}  // namespace sgemm

/// Tensor-core kernels. Source: names of cuBLAS's h884, h1688, s16816 and xmma kernels; resident blocks from
/// accumulator registers and two to four stages of shared memory.
inline constexpr std::array<GemmTile, 6> tensor_gemm_tiles = {
    gemm_tile("128x256", GemmLoop::tensor, 7, 8, 256, 1), gemm_tile("256x128", GemmLoop::tensor, 8, 7, 256, 1),
    gemm_tile("128x128", GemmLoop::tensor, 7, 7, 256, 2), gemm_tile("128x64", GemmLoop::tensor, 7, 6, 128, 3),
    gemm_tile("64x64", GemmLoop::tensor, 6, 6, 128, 5),   gemm_tile("32x32", GemmLoop::tensor, 5, 5, 64, 12)};

[[nodiscard]] constexpr bool is_tensor(MathPath path) {
    return path == MathPath::tf32 || path == MathPath::fp16_tensor || path == MathPath::bf16_tensor ||
           path == MathPath::int8_tensor || path == MathPath::fp16_tensor_fp16_accumulate;
}

/// Lists the kernels cuBLAS has taken on an architecture, `batched` for strided batches of more than one product.
/// Source: kernel column of neusight_ops.csv, all kernels with more than 2 % of the rows; Maxwell runs Pascal's, Ada
/// and later Ampere's.
[[nodiscard]] inline std::span<const GemmTile> gemm_tiles(Architecture architecture, MathPath path, bool batched) {
    using namespace sgemm;
    static constexpr std::array<GemmTile, 3> pascal = {t64x64, t32x128, t128x32};
    static constexpr std::array<GemmTile, 3> gp100 = {t64x64_gp100, t32x128, t128x32};
    static constexpr std::array<GemmTile, 7> volta = {t128x128, t128x64, t32x128,       t128x32,
                                                      t32x32,   t64x32,  t128x32_sliced};
    static constexpr std::array<GemmTile, 8> turing = {t128x128, t128x64, t64x64, t32x128,
                                                       t128x32,  t32x32,  t64x32, t128x32_sliced};
    static constexpr std::array<GemmTile, 6> ampere = {t128x64, t32x128, t128x32, t32x32, t64x32, t128x32_sliced};
    static constexpr std::array<GemmTile, 1> pascal_batched = {t128x64};
    static constexpr std::array<GemmTile, 3> volta_batched = {t64x64, t32x128, t128x32};
    static constexpr std::array<GemmTile, 3> turing_batched = {t128x64, t64x64, t128x32};
    static constexpr std::array<GemmTile, 1> ampere_batched = {t128x128};
    if (is_tensor(path)) return tensor_gemm_tiles;
    if (architecture < Architecture::volta && batched) return pascal_batched;
    if (architecture == Architecture::gp100) return gp100;
    if (architecture < Architecture::volta) return pascal;
    if (architecture == Architecture::volta) return batched ? std::span<const GemmTile>(volta_batched) : volta;
    if (architecture == Architecture::turing) return batched ? std::span<const GemmTile>(turing_batched) : turing;
    return batched ? std::span<const GemmTile>(ampere_batched) : ampere;
}

}  // namespace ftax::kernels
