#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <type_traits>

#include "ftax/equations.hpp"
#include "ftax/parameter.hpp"
#include "ftax/predict.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/gemm_credit.hpp"
#include "predictors/kernels/gemm_tiles.hpp"
#include "predictors/kernels/power.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tiles.hpp"

/// Time of a matrix product: the kernel cuBLAS would take, its blocks in waves over the SMs, its traffic behind an L2
/// whose hits depend on how closely the blocks keep step; at boost clock, and the energy that it takes.
namespace ftax::kernels {

/// Ratios of the matrix-product kernels; efficiencies are shares of the sustained rates in DeviceRates.
template <class T>
struct GemmParameters {
    T wave_sharpness{}, fill{}, linear_fill{}, latency_cycles{}, issue_latency{};
    T wide_efficiency{}, narrow_efficiency{}, sliced_efficiency{}, linear_efficiency{};
    T write_bandwidth{}, read_bandwidth{}, strided_bandwidth{}, strided_reduction{};
    T linear_strided_bandwidth{}, linear_strided_reduction{};
    T vector_strided_loss{}, page_loss{}, page_reduction{}, misaligned_read{}, misaligned_write{};
    T reread{}, skew_waves{}, skew{};
    T split_s{}, energy_scale{}, operand_energy{}, idle_energy{};
    T tensor_efficiency{}, tensor_latency_cycles{}, tensor_misaligned{}, tensor_fill{}, tensor_batched_fill{};
};

/// Calls visit(name, field, ParameterSpec) for each parameter.
/// Source: initial values are those of a robust fit to linear and bmm rows of neusight_ops.csv over five GPUs; where a
/// specification names something else, that.
template <class T, class Visit>
void visit_parameters(GemmParameters<T>& p, Visit&& visit) {
    using enum ParameterScope;
    visit("gemm.wave_sharpness", p.wave_sharpness,
          ParameterSpec{0.86, 0.05, 1, 0.3, architecture, "share of blocks that start in whole waves, see wave_time"});
    visit("gemm.fill", p.fill,
          ParameterSpec{8, 0.5, 80, 0.5, architecture, "start and end of a block, in values of the reduction"});
    visit("gemm.linear_fill", p.linear_fill,
          ParameterSpec{20, 0.5, 80, 0.5, architecture, "the same of x·Wᵀ on CUDA cores, see linear_efficiency"});
    visit("gemm.latency_cycles", p.latency_cycles,
          ParameterSpec{500, 40, 2500, 0.4, architecture, "cycles of one 8-deep main-loop step of a lone block"});
    visit("gemm.issue_latency", p.issue_latency,
          ParameterSpec{0.6, 0.02, 3, 0.4, architecture,
                        "the same of a block with one warp per scheduler, in units of its arithmetic"});
    visit("gemm.wide_efficiency", p.wide_efficiency,
          ParameterSpec{0.92, 0.5, 1.3, 0.1, architecture, "main loop, 64 outputs per thread"});
    visit("gemm.narrow_efficiency", p.narrow_efficiency,
          ParameterSpec{0.85, 0.4, 1.3, 0.12, architecture, "main loop, 16 outputs per thread"});
    visit("gemm.sliced_efficiency", p.sliced_efficiency,
          ParameterSpec{0.78, 0.3, 1.3, 0.1, architecture, "main loop, kernels whose threads share the reduction"});
    visit("gemm.linear_efficiency", p.linear_efficiency,
          ParameterSpec{1, 0.6, 1.5, 0.1, architecture, "x·Wᵀ against A·B: both operands run along the reduction"});
    visit("gemm.write_bandwidth", p.write_bandwidth,
          ParameterSpec{0.85, 0.3, 1.8, 0.15, architecture, "result, share of the sustained bandwidth"});
    visit("gemm.read_bandwidth", p.read_bandwidth,
          ParameterSpec{1.1, 0.3, 1.8, 0.15, architecture, "operand whose rows are contiguous, likewise"});
    visit("gemm.strided_bandwidth", p.strided_bandwidth,
          ParameterSpec{0.5, 0.05, 1.8, 0.6, architecture, "operand read 32 bytes per row at a time, likewise"});
    visit("gemm.strided_reduction", p.strided_reduction,
          ParameterSpec{120, 1, 2000, 0.5, architecture, "length of such rows at which half of that loss is felt"});
    visit("gemm.linear_strided_bandwidth", p.linear_strided_bandwidth,
          ParameterSpec{0.5, 0.05, 1.8, 0.6, architecture, "the same two of x·Wᵀ, both of whose operands are so read"});
    visit("gemm.linear_strided_reduction", p.linear_strided_reduction,
          ParameterSpec{120, 1, 2000, 0.5, architecture, "see linear_strided_bandwidth"});
    visit("gemm.vector_strided_loss", p.vector_strided_loss,
          ParameterSpec{0.5, 0.1, 1, 0.3, shared, "share of the loss to strided reads that 128x128x8 kernels have"});
    visit("gemm.page_loss", p.page_loss,
          ParameterSpec{0.8, 0.01, 5, 0.5, shared, "further loss when neighbouring rows share no DRAM page"});
    visit("gemm.page_reduction", p.page_reduction,
          ParameterSpec{15000, 1000, 100000, 0.5, shared, "length of rows at which half of that is felt"});
    visit("gemm.misaligned_read", p.misaligned_read,
          ParameterSpec{0.05, 0.005, 0.5, 0.5, shared,
                        "extra reads when such rows do not start on a sector of 32 bytes, and on a line of 128"});
    visit("gemm.misaligned_write", p.misaligned_write,
          ParameterSpec{0.2, 0.01, 1.5, 0.5, architecture, "extra writes when result rows do not start on 32 bytes"});
    visit("gemm.reread", p.reread,
          ParameterSpec{6, 0.1, 50, 0.7, shared, "half of the re-reads miss when this times working set / L2 is 1"});
    visit("gemm.skew_waves", p.skew_waves,
          ParameterSpec{19, 0.5, 500, 0.7, shared,
                        "waves after which blocks have drifted half as far apart as they will, on 40 SMs"});
    visit("gemm.skew", p.skew,
          ParameterSpec{17, 0.5, 500, 1.0, shared,
                        "rows that each resident block reads between two that share one, four warps each, once they "
                        "have drifted apart"});
    visit("gemm.split_s", p.split_s,
          ParameterSpec{6e-6, 1e-7, 2e-5, 0.5, shared, "adding up the parts of a split reduction, besides traffic"});
    visit("gemm.energy_scale", p.energy_scale,
          ParameterSpec{1, 0.3, 3, 0.15, architecture, "energy per operation against energy_per_flop_j"});
    visit("gemm.operand_energy", p.operand_energy,
          ParameterSpec{0.2, 0.01, 1, 0.5, shared,
                        "share of a 128x128 block's energy that brings its operands, more for smaller blocks; a T4's "
                        "64x64 kernel is 20 % slower than its 128x64 kernel, beyond 3 ms only (neusight_ops.csv)"});
    visit("gemm.idle_energy", p.idle_energy,
          ParameterSpec{0.4, 0.01, 1, 0.5, shared,
                        "share of its power that a multiprocessor draws while it waits, CUDA cores"});
    visit("gemm.tensor_efficiency", p.tensor_efficiency,
          ParameterSpec{0.9, 0.3, 1.1, 0.15, architecture,
                        "main loop on tensor cores; prior: best cuBLAS results, 0.85 to 0.95 of peak"});
    visit("gemm.tensor_latency_cycles", p.tensor_latency_cycles,
          ParameterSpec{400, 50, 3000, 0.5, architecture,
                        "as latency_cycles, step of 32; prior: global-memory latency, Jia et al., arXiv 1804.06826"});
    visit("gemm.tensor_misaligned", p.tensor_misaligned,
          ParameterSpec{0.4, 0.05, 1, 0.5, architecture,
                        "rate when n or k is no multiple of 16 bytes (8 from Ampere on, whose asynchronous copies take "
                        "less); prior: cuBLAS kernels for 2-byte alignment"});
    visit("gemm.tensor_fill", p.tensor_fill, ParameterSpec{24, 2, 100, 0.5, shared, "as fill, of tensor-core kernels"});
    visit("gemm.tensor_batched_fill", p.tensor_batched_fill,
          ParameterSpec{64, 2, 600, 0.5, shared, "the same of strided batches, in addition; framework_tax.csv fp16"});
}

/// What was chosen for a matrix product and why it takes as long as it does.
template <class T>
struct GemmPlan : PoweredTime<T> {
    T compute_s{};                   ///< arithmetic in waves
    T memory_s{};                    ///< traffic
    const GemmTile* tile = nullptr;  ///< of a catalogue that lives as long as the program
    double split = 1;                ///< parts of the reduction
    double waves = 0;                ///< blocks / (SMs · resident blocks)
    Bound bound = Bound::compute;
};

namespace gemm {

template <class T>
double value_of(const T& x) {
    if constexpr (requires { x.a; }) {
        return x.a;
    } else {
        return x;
    }
}

/// Values of the reduction per step of the main loop. Source: shared-memory stages of sgemm (8) and xmma kernels.
inline double main_loop_step(MathPath path) {
    return is_tensor(path) ? 32 : 8;
}

/// Steps of the main loop that a tensor-core kernel loads ahead, against one of Ampere and before.
/// Source: CUTLASS's sm90 kernels keep four to seven stages of 64 values in flight; public bf16 products of an H100
/// (XLA, matmul_interpolator_data.h).
inline double steps_ahead(Architecture architecture) {
    return architecture >= Architecture::hopper ? 4 : 1;
}

/// Chooses how many parts a tensor-core product's reduction falls into: more than one while the grid does not fill the
/// SMs' residency; from Ampere on hardly more than one block per SM is enough to leave it whole.
/// Source: by analogy, grids of neusight_ops.csv; there are no rows of tensor cores.
inline double split_for(const GemmTile& tile, double blocks_per_sm, double most_parts, Architecture architecture) {
    const double enough = architecture >= Architecture::ampere && tile.resident > 1 ? 1.5 : tile.resident;
    if (blocks_per_sm >= enough) return 1;
    const double wanted = whole_part(1.55 * tile.resident / blocks_per_sm + 0.5);
    return std::max(1.0, std::min(wanted, most_parts));
}

/// What one shape sees of the device: an SM's time per operation in each main loop, and the latencies of wave_time in
/// units of a block's arithmetic, up to the tile: its main loop waits for memory, and a block of fewer than four warps
/// leaves schedulers idle.
template <class T>
struct BlockRates {
    std::array<T, gemm_loop_count> s_per_flop{};
    T fill{};
    T memory_latency{};
    T issue_latency{};
    double step = 8;  ///< a power of two
    double inverse_step = 0.125;

    /// Length of the main loop over one part of a split reduction.
    [[nodiscard]] double part(std::int64_t k, double split) const {
        return step * round_up(static_cast<double>(k) / split * inverse_step);
    }
};

template <class T>
BlockRates<T> block_rates(const GemmShape& s, const DeviceRates<T>& rates, const GemmParameters<T>& p) {
    BlockRates<T> r;
    const T sm_s_per_flop = rates.sms / rates.flops_per_s;
    const T flops_per_cycle = 1.0 / (sm_s_per_flop * rates.boost_clock_hz);
    r.step = main_loop_step(rates.path);
    r.inverse_step = 1 / r.step;
    if (is_tensor(rates.path)) {
        const std::int64_t copy_bytes = rates.architecture >= Architecture::ampere ? 8 : 16;
        const bool fits = is_aligned(s.n, s.element_bytes, copy_bytes) && is_aligned(s.k, s.element_bytes, copy_bytes);
        const T efficiency = fits ? p.tensor_efficiency : T(p.tensor_efficiency * p.tensor_misaligned);
        r.s_per_flop.fill(sm_s_per_flop / efficiency);
        r.fill = is_batched(s) ? T(p.tensor_fill + p.tensor_batched_fill) : p.tensor_fill;
        r.memory_latency =
            p.tensor_latency_cycles * flops_per_cycle * (0.5 / (r.step * steps_ahead(rates.architecture)));
        r.issue_latency = p.issue_latency;
        return r;
    }
    r.fill = s.linear ? p.linear_fill : p.fill;
    // 128x128x8 kernels compute x·Wᵀ at the rate of A·B.
    const T base = s.linear ? T(sm_s_per_flop / p.linear_efficiency) : sm_s_per_flop;
    r.s_per_flop = {base / p.wide_efficiency, sm_s_per_flop / p.wide_efficiency, base / p.narrow_efficiency,
                    base / p.sliced_efficiency, T(0.0)};
    r.memory_latency = p.latency_cycles * flops_per_cycle * (0.5 / r.step);
    r.issue_latency = p.issue_latency * flops_per_cycle * (1.0 / 128);
    return r;
}

/// Time of a block's arithmetic: 2·tile·(reduction + fill) operations at its SM's share of the rate.
template <class T>
T block_time(const GemmTile& tile, double part, const BlockRates<T>& r) {
    return (r.fill + part) * (2 * tile.area) * r.s_per_flop[static_cast<std::size_t>(tile.loop)];
}

/// Square of the latency of wave_time.
template <class T>
T squared_latency(const GemmTile& tile, const BlockRates<T>& r) {
    const T memory = r.memory_latency * tile.inverse_work;
    const T issue = r.issue_latency * (tile.idle_schedulers * tile.idle_schedulers);
    return memory * memory + issue * issue;
}

/// Time of blocks of block_time in waves.
template <class T>
T compute_time(const GemmTile& tile, double blocks_per_sm, const T& block_s, const BlockRates<T>& r,
               const GemmParameters<T>& p) {
    return block_s * wave_time_of_squared_latency(blocks_per_sm, tile.resident, tile.inverse_resident,
                                                  squared_latency(tile, r), p.wave_sharpness);
}

/// Takes the least arithmetic time plus traffic through the L2 at twice the memory bandwidth, hits left aside as cuBLAS
/// does: tensor cores, of whose choice no rows tell.
inline Choice choose_by_time(const GemmShape& s, std::span<const GemmTile> tiles, const DeviceRates<double>& rates,
                             const GemmParameters<double>& p, const BlockRates<double>& r) {
    const double inverse_sms = 1 / rates.sms;
    const double l2_s_per_value = s.element_bytes / (2 * rates.bandwidth_bytes_per_s);
    const double longest = most_parts(s.k);
    const double whole = r.part(s.k, 1);
    Choice best{&tiles.front(), 1};
    double least = std::numeric_limits<double>::infinity();
    const auto consider = [&](const GemmTile& tile, double blocks, double split, double part) {
        const double per_sm = blocks * split * inverse_sms;
        const double block_s = block_time(tile, part, r);
        double score = blocks * split * (tile.columns + tile.rows) * part * l2_s_per_value;
        if (split > 1) score += p.split_s;
        if (score + block_s * std::max(per_sm, 1.0) >= least) return;
        score += compute_time(tile, per_sm, block_s, r, p);
        if (score >= least) return;
        least = score;
        best = {&tile, split};
    };
    const auto consider_splits = [&](const GemmTile& tile, double blocks) {
        const double most = is_batched(s) ? 1 : split_for(tile, blocks * inverse_sms, longest, rates.architecture);
        if (most > 1) consider(tile, blocks, most, r.part(s.k, most));
        consider(tile, blocks, 1, whole);
    };
    // However split, a tile takes no less than its arithmetic at the SMs' full rate and its traffic: the tile of least
    // bound goes first, and most others fail.
    std::array<double, tensor_gemm_tiles.size()> blocks{}, bound_s{};
    std::size_t first = 0;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
        const GemmTile& tile = tiles[i];
        blocks[i] = blocks_of(s, tile);
        bound_s[i] = blocks[i] *
                     (block_time(tile, whole, r) * inverse_sms + (tile.columns + tile.rows) * whole * l2_s_per_value);
        if (bound_s[i] < bound_s[first]) first = i;
    }
    consider_splits(tiles[first], blocks[first]);
    for (std::size_t i = 0; i < tiles.size(); ++i) {
        if (i != first && bound_s[i] < least) consider_splits(tiles[i], blocks[i]);
    }
    best.summed_apart = is_summed_apart(s, best.split);
    return best;
}

template <class T>
DeviceRates<double> values_of(const DeviceRates<T>& rates) {
    return {rates.architecture,
            rates.path,
            rates.sms,
            rates.l2_bytes,
            rates.shared_memory_per_sm_bytes,
            rates.max_threads_per_sm,
            rates.boost_clock_hz,
            rates.arithmetic_power_w,
            rates.energy_per_flop_j,
            rates.fp32_energy_per_flop_j,
            value_of(rates.flops_per_s),
            value_of(rates.fp32_flops_per_s),
            value_of(rates.bandwidth_bytes_per_s),
            value_of(rates.floor_s)};
}

template <class T>
GemmParameters<double> values_of(GemmParameters<T> p) {
    GemmParameters<double> values;
    std::array<double, 40> list{};
    std::size_t count = 0, next = 0;
    visit_parameters(p, [&](std::string_view, T& value, const ParameterSpec&) { list[count++] = value_of(value); });
    visit_parameters(values, [&](std::string_view, double& value, const ParameterSpec&) { value = list[next++]; });
    return values;
}

/// Chooses kernel and split as cuBLAS does. The choice has no derivative.
template <class T>
Choice choose(const GemmShape& s, const DeviceRates<T>& rates, const GemmParameters<T>& p, const BlockRates<T>& r) {
    if (!is_tensor(rates.path)) return choose_on_cores(s, rates.architecture, rates.sms);
    const auto tiles = gemm_tiles(rates.architecture, rates.path, is_batched(s));
    if constexpr (std::is_same_v<T, double>) {
        return choose_by_time(s, tiles, rates, p, r);
    } else {
        const auto rate_values = values_of(rates);
        const auto values = values_of(p);
        return choose_by_time(s, tiles, rate_values, values, block_rates(s, rate_values, values));
    }
}

template <class T>
T miss_share(const T& working_set, double room = 1) {
    return working_set / (room + working_set);
}

/// Tells whether blocks that share operands lose step, see shared_traffic.
inline bool blocks_drift(Architecture architecture, GemmLoop loop) {
    const bool drifts = loop == GemmLoop::wide || loop == GemmLoop::vector || loop == GemmLoop::narrow;
    return architecture < Architecture::ampere && drifts;
}

/// Blocks along n and m that are on the GPU at one time.
struct Band {
    double across = 1, down = 1;
};

/// Returns the band of a grid: its blocks are launched along n on CUDA cores, as square as the grid allows on tensor
/// cores, and in rows of two by two by the 128x128x8 kernels (in columns where the rows of blocks are odd in number).
/// Source: grid column of neusight_ops.csv, where x, y, z of these are 4, columns / 2 and rows / 2 for even numbers in
/// all 941 rows. On tensor cores, public f16 results of square products, 8,192 and more, need square bands: an RTX
/// 4060 Ti reaches 72 TFLOP/s at 288 GB/s (github.com/AD2605/gemm-zoo, benchmarks.md), a T4 42 TFLOP/s at 320 GB/s.
inline Band band_of(const GemmTile& tile, double grid_columns, double grid_rows, double resident) {
    if (grid_columns * grid_rows <= resident) return {grid_columns, grid_rows};
    double widest = resident;
    if (tile.loop == GemmLoop::tensor) {
        widest = std::max(std::sqrt(resident * tile.rows * tile.inverse_columns), resident / grid_rows);
    } else if (tile.loop == GemmLoop::vector) {
        const bool is_even = whole_part(0.5 * grid_rows) * 2 == grid_rows;
        widest = resident / (is_even ? 2 : grid_rows);
    }
    const double across = std::clamp(widest, 1.0, grid_columns);
    return {across, std::clamp(resident / across, 1.0, grid_rows)};
}

/// Bytes of both operands that come from memory.
template <class T>
struct Traffic {
    T rows{};     ///< A, m × k, shared by the blocks of a row
    T columns{};  ///< B, k × n, shared by the blocks of a column
};

/// Cost of an operand whose rows run along the reduction, which a block reads 32 bytes of a row at a time: against rows
/// read in a piece.
/// Source: neusight_ops.csv linear. Where one row of blocks fills the GPU no two of them share weights and the traffic
/// is known: a P4 sustains 0.40 of its bandwidth in rows of 128 values, 0.27 of 512, 0.18 of 4,096 and 0.12 of 32,768,
/// alike in 64x64 and 32x128 blocks, a P100 0.28, 0.25 and 0.23. Where memory decides, rows of a multiple of 8 values
/// take 4 (P4) to 6 % (P100) less time than others, of a multiple of 32 values 4 to 12 %. 128x128x8 kernels lose about
/// half as much (a P4's layers).
template <class T>
T strided_cost(const GemmShape& s, GemmLoop loop, const DeviceRates<T>& rates, const GemmParameters<T>& p) {
    if (is_tensor(rates.path)) return T(1.0);  // 64 bytes of a row at a time
    const double length = static_cast<double>(s.k) * s.element_bytes * 0.25;
    const T bandwidth = s.linear ? p.linear_strided_bandwidth : p.strided_bandwidth;
    const T half = s.linear ? p.linear_strided_reduction : p.strided_reduction;
    const double length2 = length * length;
    const T cost = 1.0 + (1.0 / bandwidth - 1.0) * (length2 / (length2 + half * half)) +
                   p.page_loss * (length / (length + p.page_reduction));
    const double straddled =
        (is_aligned(s.k, s.element_bytes, 32) ? 0.0 : 1.0) + (is_aligned(s.k, s.element_bytes, 128) ? 0.0 : 1.0);
    const T whole = cost * (1.0 + p.misaligned_read * straddled);
    return loop == GemmLoop::vector ? T(1.0 + p.vector_strided_loss * (whole - 1.0)) : whole;
}

/// Share of the reads that blocks which share an operand do for themselves: each trails the one before it by the drift
/// of all over their number to the power of 3/4 (fits prefer 0.64 to 0.75, this takes two square roots), and the L2 may
/// have lost by then what that one read.
template <class T>
T lost_share(const T& drift, double sharers) {
    const double spread = std::sqrt(sharers);
    return miss_share(drift, spread * std::sqrt(spread));
}

/// Counts operand traffic. What the blocks of a band share is read once while they keep step; later bands re-read what
/// has left the L2. On CUDA cores before Ampere blocks drift apart, over the waves more and more until they are spread
/// over a whole block's time, the faster the more SMs and the slower the more warps hold a block together; sliced
/// kernels keep step. Between two blocks that share a row of the operands the resident blocks read as much as they
/// drifted, over the number of blocks that share it to the power of 3/4: once that exceeds the L2, the second reads for
/// itself.
/// Source: our fits to neusight_ops.csv linear. A P4's 64x64 kernel reads the columns of the weights for each block row
/// anew in 10 % of the cases after two waves, 50 % after eight, 80 % after sixteen (k = 1,000), a P100's almost from
/// the start: the drift goes with the waves and the square of the SMs. One set of three numbers (skew, skew_waves and
/// the power) holds for P4, P100, V100 and T4 in both kinds of operands and kernels; an A100's rows do not tell; an
/// RTX 3090's 24.5 TFLOP/s in f32 leave no room for drift (github.com/zzc0721/torch-performance-test-data).
template <class T>
Traffic<T> shared_traffic(const GemmShape& s, const Choice& c, double grid_columns, double grid_rows, double part,
                          const DeviceRates<T>& rates, const GemmParameters<T>& p) {
    const GemmTile& tile = *c.tile;
    const double batches = static_cast<double>(s.batch) * c.split;
    const double grid = grid_columns * grid_rows;
    const double resident = rates.sms * tile.resident;
    const double depth_bytes = part * s.element_bytes;
    const double inverse_l2 = 1 / rates.l2_bytes;
    const auto m = static_cast<double>(s.m), n = static_cast<double>(s.n);
    const auto [across, down] = band_of(tile, grid_columns, grid_rows, resident);
    T rows_once(m * depth_bytes), columns_once(n * depth_bytes);
    if (grid > resident) {
        const double band_rows = std::min(down * tile.rows, m);
        const double band_columns = std::min(across * tile.columns, n);
        const T row_miss = miss_share(T(p.reread * ((band_rows + band_columns) * depth_bytes * inverse_l2)));
        const T column_miss = miss_share(T(p.reread * (n * depth_bytes * inverse_l2)));
        rows_once *= 1.0 + row_miss * (grid_columns / across - 1);
        columns_once *= 1.0 + column_miss * (grid_rows / down - 1);
    }

    if (!blocks_drift(rates.architecture, tile.loop)) return {batches * rows_once, batches * columns_once};
    const double waves = batches * grid / resident * (rates.sms * rates.sms * (1.0 / 1600));
    const T drift =
        p.skew * (waves / (p.skew_waves + waves)) * (resident * depth_bytes * inverse_l2) * tile.idle_schedulers;
    return {batches * rows_once * (1.0 + (across - 1) * lost_share(drift, across)),
            batches * columns_once * (1.0 + (down - 1) * lost_share(drift, down))};
}

/// Energy per operation against that of a 128 × 128 block: each operand value serves a row or column of the block.
/// Tensor cores and sliced kernels are left out, for want of rows that would show it.
template <class T>
T tile_energy(const GemmTile& tile, const GemmParameters<T>& p) {
    if (tile.loop == GemmLoop::tensor || tile.loop == GemmLoop::sliced) return T(1.0);
    return 1.0 + p.operand_energy * (64 * (tile.inverse_columns + tile.inverse_rows) - 1);
}

/// Times one choice. GCC would not inline it, at 17 % more instructions for an evaluation.
template <class T>
[[gnu::always_inline]] inline GemmPlan<T> plan_choice(const GemmShape& s, const Choice& c, const DeviceRates<T>& rates,
                                                      const GemmParameters<T>& p, const BlockRates<T>& block) {
    const double grid_columns = block_columns(s, *c.tile);
    const double grid_rows = block_rows(s, *c.tile);
    const double part = block.part(s.k, c.split);
    const double blocks_per_sm = grid_columns * grid_rows * static_cast<double>(s.batch) * c.split / rates.sms;

    GemmPlan<T> plan;
    plan.tile = c.tile;
    plan.split = c.split;
    plan.waves = blocks_per_sm * c.tile->inverse_resident;
    const T block_s = block_time(*c.tile, part, block);
    plan.compute_s = compute_time(*c.tile, blocks_per_sm, block_s, block, p);
    const T busy_s = block_s * blocks_per_sm;
    const T powered_s = is_tensor(rates.path) ? busy_s : T(busy_s + p.idle_energy * (plan.compute_s - busy_s));

    const T per_byte_s = 1.0 / rates.bandwidth_bytes_per_s;
    const T strided = strided_cost(s, c.tile->loop, rates, p);
    const auto operands = shared_traffic(s, c, grid_columns, grid_rows, part, rates, p);
    const double results = static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n);
    const bool aligned = is_aligned(s.n, s.element_bytes, 32);
    const T write_cost = 1.0 / p.write_bandwidth;
    const T read_s = operands.rows * strided + operands.columns * (s.linear ? strided : T(1.0 / p.read_bandwidth));
    const T write_s = results * s.element_bytes * (aligned ? write_cost : T(write_cost * (1.0 + p.misaligned_write)));
    plan.memory_s = (read_s + write_s) * per_byte_s;

    T whole_s = equations::smooth_maximum(plan.compute_s, plan.memory_s);
    if (c.split > 1) {
        whole_s += p.split_s;
        // The parts are f32; one reduction reads them and writes the result.
        if (c.summed_apart) whole_s += (0.5 * 4) * results * (1 + c.split) * write_cost * per_byte_s;
    }
    if (s.separate_bias) whole_s += 2 * results * s.element_bytes * per_byte_s;
    plan.seconds = rates.floor_s + whole_s;
    const T arithmetic_s = powered_s * power_ratio(rates, T(p.energy_scale * tile_energy(*c.tile, p)));
    plan.energy_s = energy_seconds(plan.seconds, arithmetic_s);
    plan.bound = whole_s < rates.floor_s          ? Bound::latency_floor
                 : plan.memory_s < plan.compute_s ? Bound::compute
                                                  : Bound::memory;
    return plan;
}

template <class T>
GemmPlan<T> plan_choice(const GemmShape& s, const Choice& c, const DeviceRates<T>& rates, const GemmParameters<T>& p) {
    return plan_choice(s, c, rates, p, block_rates(s, rates, p));
}

/// Tells whether cuBLAS runs a layer of few rows as matrix-vector products: 16 f32 rows before Volta, else one row.
/// Source: neusight_ops.csv lists kernels by their tiles, and exactly the rows of m <= 16 have none on P4 and P100; the
/// layers of framework_tax.csv vgg16 (k = 25,088) take the time of their weights there.
inline bool is_skinny(const GemmShape& s, Architecture architecture, MathPath path) {
    const bool few_rows = s.m <= (architecture < Architecture::volta && s.element_bytes >= 4 ? 16 : 1);
    return s.linear && path == MathPath::fp32 && few_rows;
}

/// Streams the weights once; the arithmetic of so few rows hides behind them.
template <class T>
GemmPlan<T> plan_skinny(const GemmShape& s, const DeviceRates<T>& rates) {
    GemmPlan<T> plan;
    plan.tile = &sgemm::gemv;
    plan.waves = block_columns(s, sgemm::gemv) / rates.sms * sgemm::gemv.inverse_resident;
    const auto m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
    plan.compute_s = 2 * m * n * k / rates.flops_per_s;
    plan.memory_s = s.element_bytes * (n * k + m * k + m * n) / rates.bandwidth_bytes_per_s;
    const T whole_s = equations::smooth_maximum(plan.compute_s, plan.memory_s);
    plan.seconds = rates.floor_s + whole_s;
    plan.energy_s = energy_seconds(plan.seconds, T(0.0));
    plan.bound = whole_s < rates.floor_s ? Bound::latency_floor : Bound::memory;
    return plan;
}

}  // namespace gemm

/// Chooses and times the kernel of a matrix product, without host time.
template <class T>
GemmPlan<T> plan_gemm(const GemmShape& s, const DeviceRates<T>& rates, const GemmParameters<T>& p) {
    if (gemm::is_skinny(s, rates.architecture, rates.path)) return gemm::plan_skinny(s, rates);
    const auto block = gemm::block_rates(s, rates, p);
    return gemm::plan_choice(s, gemm::choose(s, rates, p, block), rates, p, block);
}

}  // namespace ftax::kernels
