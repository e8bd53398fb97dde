#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "ftax/equations.hpp"
#include "graphs/base/checked_math.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/gemm_heuristic.hpp"
#include "predictors/kernels/gemm_traffic.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/kernels/power.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tiles.hpp"

/// Time of a matrix product on CUDA cores: floor + smooth maximum of arithmetic and traffic. Arithmetic runs in waves
/// of blocks over the SMs; the L2 hits of the traffic depend on the skew between blocks.
/// docs/kernel-models/gemm-on-cuda-cores.md derives the terms.
namespace ftax::kernels {
namespace gemm {

/// Device rates for one shape: an SM's time per operation in each main loop, and the latencies of wave_time in units of
/// a block's arithmetic, before tile factors: waits for memory and idle schedulers.
struct BlockRates {
    std::array<double, main_loop_count> s_per_flop{};
    double fill{};
    double memory_latency{};
    double issue_latency{};

    /// Depth of one step of the main loop. Source: shared-memory stages of sgemm.
    static constexpr double step = 8;

    [[nodiscard]] double part(double k, double split_k) const { return step * round_up(k / split_k / step); }
};

inline BlockRates block_rates(const DeviceRates& rates, const GemmParameters& p) {
    BlockRates r;
    const double sm_s_per_flop = rates.sms / rates.flops_per_s;
    const double flops_per_cycle = 1.0 / (sm_s_per_flop * rates.boost_clock_hz);
    r.fill = p.fill;
    r.s_per_flop.fill(sm_s_per_flop / p.wide_efficiency);
    r.s_per_flop[static_cast<std::size_t>(MainLoop::narrow)] = sm_s_per_flop / p.narrow_efficiency;
    r.s_per_flop[static_cast<std::size_t>(MainLoop::sliced)] = sm_s_per_flop / p.sliced_efficiency;
    const double latency = rates.chip->gemm_latency_share * flops_per_cycle;
    r.memory_latency = p.latency_cycles * latency * (0.5 / r.step);
    r.issue_latency = p.issue_latency * latency * (1.0 / 128);
    return r;
}

/// Returns the time of a block's arithmetic: 2·tile·(reduction + fill) operations at its SM's share of the rate.
inline double block_time(const GemmTile& tile, double part, const BlockRates& r) {
    return (r.fill + part) * (2 * tile.area) * r.s_per_flop[static_cast<std::size_t>(tile.loop)] / tile.share;
}

inline double squared_latency(const GemmTile& tile, const BlockRates& r) {
    const double memory = r.memory_latency * tile.inverse_work;
    const double issue = r.issue_latency * (tile.idle_schedulers * tile.idle_schedulers);
    return memory * memory + issue * issue;
}

/// Share of the blocks that start in whole waves, see wave_time.
inline constexpr double wave_sharpness = 0.85;

inline double compute_time(const GemmTile& tile, double blocks_per_sm, double block_s, const BlockRates& r) {
    return block_s * wave_time_of_squared_latency(blocks_per_sm, tile.resident, tile.inverse_resident,
                                                  squared_latency(tile, r), wave_sharpness);
}

/// Chooses tile and split-K as cuBLAS does, independent of fitted parameters.
inline Choice choose_kernel(const GemmShape& s, const ArchitectureSpec& chip, double sms) {
    const GemmCatalogue& kernels = catalogue(s, chip);
    return choose(s, kernels, PaddedWork{&s, 1 / sms, kernels.split_penalty});
}

inline bool is_lt_layer(const GemmShape& s) {
    return s.linear && s.element_bytes == 4 && s.library == BlasLibrary::cublas_lt;
}
/// Number of 32 x 32 tiles, by which cublasLt decides about layers, and the number up to which it splits them.
inline constexpr double few_tiles = 32;
inline double small_tiles(const GemmShape& s) {
    return real(ceil_quotient(s.m, 32)) * real(ceil_quotient(s.n, 32));
}

/// Time of the blocks of a candidate, and of a second kernel that adds the parts of a split reduction. cublasLt splits
/// layers of few tiles only. Source: grids in data/measurements/h100-sxm5-80gb/product_kernels.csv.xz.
struct TileTime {
    PaddedWork splits;
    const BlockRates* rates;
    double second_kernel_s;

    [[nodiscard]] static double bound(const GemmCandidate&, double) { return 0; }
    [[nodiscard]] double next_split(const GemmCandidate& c, double blocks, double split_k) const {
        const GemmShape& s = *splits.shape;
        const double tiles = small_tiles(s);
        const bool splits_layer = tiles <= few_tiles || (tiles * splits.inverse_sms <= 2 && s.k >= 4096);
        return is_lt_layer(s) && !splits_layer ? 0 : splits.next_split(c, blocks, split_k);
    }
    [[nodiscard]] double operator()(const GemmCandidate& c, double blocks, double split_k) const {
        const double part = rates->part(real(splits.shape->k), split_k);
        return compute_time(c.tile, blocks * split_k * splits.inverse_sms, block_time(c.tile, part, *rates), *rates) +
               (split_k > 1 ? second_kernel_s : 0);
    }
};

/// Returns the energy per operation relative to a 128 × 128 block: each operand value serves a row or column of the
/// block. Sliced kernels are excluded, since no measurements show the effect.
inline double tile_energy(const GemmTile& tile, const GemmParameters& p) {
    if (tile.loop == MainLoop::sliced) return 1.0;
    return 1.0 + p.operand_energy * (64 * (tile.inverse_columns + tile.inverse_rows) - 1);
}

/// Shortest time of a product on CUDA cores, which waits for its first tiles and to add up and write results.
inline double floor_s(const DeviceRates& rates) {
    return rates.floor_s + beyond_measured_floor_s(3, rates);
}

inline KernelPlan plan_choice(const GemmShape& s, const Choice& c, const DeviceRates& rates, const GemmParameters& p,
                              const BlockRates& block) {
    const GemmTile& tile = *c.tile;
    const double grid_columns = block_columns(s, tile);
    const double grid_rows = block_rows(s, tile);
    const double part = block.part(real(s.k), c.split_k);

    KernelPlan plan;
    plan.algorithm = "gemm";
    plan.tile = {tile.name, tile.columns, tile.rows};
    plan.split_k = c.split_k;
    plan.blocks = grid_columns * grid_rows * real(s.batch) * c.split_k;
    plan.blocks_per_sm = tile.resident;
    plan.threads_per_block = 128 / tile.idle_schedulers;
    const double blocks_per_sm = plan.blocks / rates.sms;
    plan.waves = blocks_per_sm * tile.inverse_resident;
    const double block_s = block_time(tile, part, block);
    plan.compute_s = compute_time(tile, blocks_per_sm, block_s, block);
    // ggml's tiles for dp4a are multiples of eight tokens. Source: mmq.cuh, mmq_get_granularity_host.
    if (s.dot_products) plan.compute_s *= std::min(1.0, 8 * std::ceil(real(s.m) / 8) / (grid_rows * tile.rows));

    const double per_byte_s = 1.0 / rates.bandwidth_bytes_per_s;
    const double strided = s.dot_products ? 1.0 : strided_cost(s, tile.loop, p);
    // The skew was not fitted to dp4a kernels.
    const double depth_bytes = real(s.k) * s.element_bytes;
    const auto operands = s.dot_products ? Traffic{real(s.m) * depth_bytes, real(s.n) * depth_bytes}
                                         : shared_traffic(s, c, grid_columns, grid_rows, part, rates, p);
    const double results = real(s.batch) * real(s.m) * real(s.n);
    const double narrow = weight_bytes(s) / s.element_bytes;
    // An engine holds its weights in the order in which its kernels read them.
    const bool strided_weights = s.linear && !s.engine;
    const double read_s = operands.rows * strided + narrow * operands.columns * (strided_weights ? strided : 1.0);
    const double bias_bytes = s.separate_bias ? results * s.element_bytes : 0;
    plan.memory_s = (read_s + results * s.element_bytes / p.write_bandwidth + bias_bytes) * per_byte_s;

    // A second kernel adds the parts; before Hopper, fitted floors contain it.
    plan.floor_s = gemm::floor_s(rates);
    if (c.split_k > 1 && rates.chip->has_measured_gaps())
        plan.floor_s += rates.floor_s + beyond_measured_floor_s(3, rates);
    // ggml's kernel loads a tile before it multiplies it. Source: mmq.cuh, mul_mat_q_process_tile.
    const double main_s =
        s.dot_products ? plan.compute_s + plan.memory_s : equations::smooth_maximum(plan.compute_s, plan.memory_s);
    plan.seconds = plan.floor_s + main_s + bias_bytes * per_byte_s;
    const double busy_s = block_s * blocks_per_sm;
    const double energy = s.dot_products ? 0.25 : 1;  // four products per instruction
    plan.power_limited_s = power_limited_seconds(
        plan.seconds, busy_s * power_ratio(rates, energy * p.energy_scale * tile_energy(tile, p)), rates);
    return plan;
}

/// Returns true if cuBLAS runs a layer of few rows as matrix-vector products.
inline bool is_gemv(const GemmShape& s, const ArchitectureSpec& chip) {
    const bool one_row = s.m == 1 && chip.layers.by_time;
    const bool to_vector = (s.n == 1 || one_row) && s.batch == 1;  // torch.mv and products with one column
    return to_vector || (s.linear && s.m <= (s.element_bytes >= 4 ? chip.gemv_rows : 1));
}

/// Plans matrix-vector products: the weights are streamed once and hide the arithmetic of the few rows.
inline KernelPlan plan_gemv(const GemmShape& s, const DeviceRates& rates) {
    KernelPlan plan;
    plan.algorithm = "gemv";
    plan.blocks_per_sm = 8;
    plan.blocks = tiles_over_log2(s.n, 7);
    plan.waves = plan.blocks / (rates.sms * plan.blocks_per_sm);
    const auto m = real(s.m), n = real(s.n), k = real(s.k);
    plan.compute_s = 2 * m * n * k / rates.flops_per_s;
    plan.memory_s = (weight_bytes(s) * n * k + s.element_bytes * (m * k + m * n)) / rates.bandwidth_bytes_per_s;
    plan.floor_s = gemm::floor_s(rates);
    plan.seconds = plan.floor_s + equations::smooth_maximum(plan.compute_s, plan.memory_s);
    plan.power_limited_s = power_limited_seconds(plan.seconds, 0.0, rates);
    return plan;
}

/// Returns the time of the main loops and helper kernels of cublasLt 13's sgemm_largek_lds64; 0 where another kernel
/// runs. Parts of k run side by side, each step of eight values takes 0.155 us for each block of an SM, in layers of up
/// to 16 rows a sixth of a wait for memory. Source: data/measurements/h100-sxm5-80gb/product_kernels.csv.xz.
inline double largek_seconds(const GemmShape& s, const DeviceRates& rates) {
    constexpr std::int64_t few_rows = 16, long_k = 2048;
    constexpr double block_step_cycles = 307;
    const bool concerned = rates.chip->has_sgemm_largek && s.newest_library && is_lt_layer(s);
    if (!concerned) return 0;
    const double tiles = small_tiles(s);
    const double steps = real(ceil_quotient(s.k, 8));
    if (s.m <= few_rows) return tiles <= 2 * rates.sms ? 0.16 * steps * wait_cycles / rates.boost_clock_hz : 0;
    if (tiles <= few_tiles || tiles > rates.sms || real(s.k) < 8 * tiles) return 0;
    const double at_once = std::clamp(std::floor(2 * rates.sms / tiles), 1.0, 5.0);
    const double parts = s.k < long_k ? at_once : std::max(at_once, std::min(4.0, std::floor(3 * rates.sms / tiles)));
    const double step_s = block_step_cycles * round_up(tiles * parts / rates.sms) / rates.boost_clock_hz;
    const double others_s = 3 * (rates.floor_s + rates.chip->stream_gap_s.value_or(0));
    return others_s + 2 * (3 + parts) * wait_cycles / rates.boost_clock_hz + step_s * round_up(steps / parts);
}

}  // namespace gemm

/// Chooses and times the kernel of a matrix product on CUDA cores, without host time.
inline KernelPlan plan(const GemmShape& s, const DeviceRates& rates, const GemmParameters& p) {
    if (gemm::is_gemv(s, *rates.chip)) return gemm::plan_gemv(s, rates);
    const auto block = gemm::block_rates(rates, p);
    const GemmCatalogue& kernels = gemm::catalogue(s, *rates.chip);
    const auto choice = kernels.by_time
                            ? choose(s, kernels, gemm::TileTime{{&s, 1 / rates.sms}, &block, 2 * gemm::floor_s(rates)})
                            : gemm::choose_kernel(s, *rates.chip, rates.sms);
    auto plan = gemm::plan_choice(s, choice, rates, p, block);
    if (const double largek_s = gemm::largek_seconds(s, rates); largek_s > 0) {
        plan.compute_s = largek_s;
        plan.floor_s = gemm::floor_s(rates);
        plan.seconds = plan.floor_s + equations::smooth_maximum(largek_s, plan.memory_s);
    }
    return plan;
}

}  // namespace ftax::kernels
