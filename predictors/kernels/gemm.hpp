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
#include "predictors/kernels/gemm_parameters.hpp"
#include "predictors/kernels/gemm_tiles.hpp"
#include "predictors/kernels/gemm_traffic.hpp"
#include "predictors/kernels/power.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tiles.hpp"

/// Time of a matrix product: the kernel cuBLAS would take, its blocks in waves over the SMs, its traffic behind an L2
/// whose hits depend on how closely the blocks keep step; at boost clock, and the energy that it takes.
namespace ftax::kernels {

/// What was chosen for a matrix product and why it takes as long as it does.
template <class T>
struct GemmPlan : KernelTime<T> {
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
    const T strided = strided_cost(s, c.tile->loop, p);
    const auto operands = shared_traffic(s, c, grid_columns, grid_rows, part, rates, p);
    const double results = static_cast<double>(s.batch) * static_cast<double>(s.m) * static_cast<double>(s.n);
    const bool aligned = is_aligned(s.n, s.element_bytes, 32);
    const T write_cost = 1.0 / p.write_bandwidth;
    const T read_s = operands.rows * strided + operands.columns * (s.linear ? strided : T(1.0 / p.read_bandwidth));
    const T write_s = results * s.element_bytes * (aligned ? write_cost : T(write_cost * (1.0 + p.misaligned_write)));
    const double bias_bytes = s.separate_bias ? results * s.element_bytes : 0;
    plan.memory_s = (read_s + write_s + bias_bytes) * per_byte_s;

    T whole_s = equations::smooth_maximum(plan.compute_s, plan.memory_s);
    if (c.split > 1) {
        whole_s += p.split_s;
        // The parts are f32; one reduction reads them and writes the result.
        if (c.summed_apart) whole_s += (0.5 * 4) * results * (1 + c.split) * write_cost * per_byte_s;
    }
    whole_s += bias_bytes * per_byte_s;  // the copy, a kernel of its own
    plan.seconds = rates.floor_s + whole_s;
    const T arithmetic_s = powered_s * power_ratio(rates, T(p.energy_scale * tile_energy(*c.tile, p)));
    plan.power_limited_s = power_limited_seconds(plan.seconds, arithmetic_s);
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
inline bool is_gemv(const GemmShape& s, Architecture architecture, MathPath path) {
    const bool few_rows = s.m <= (architecture < Architecture::volta && s.element_bytes >= 4 ? 16 : 1);
    return s.linear && path == MathPath::fp32 && few_rows;
}

/// Streams the weights once; the arithmetic of so few rows hides behind them.
template <class T>
GemmPlan<T> plan_gemv(const GemmShape& s, const DeviceRates<T>& rates) {
    GemmPlan<T> plan;
    plan.tile = &sgemm::gemv;
    plan.waves = block_columns(s, sgemm::gemv) / rates.sms * sgemm::gemv.inverse_resident;
    const auto m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
    plan.compute_s = 2 * m * n * k / rates.flops_per_s;
    plan.memory_s = s.element_bytes * (n * k + m * k + m * n) / rates.bandwidth_bytes_per_s;
    const T whole_s = equations::smooth_maximum(plan.compute_s, plan.memory_s);
    plan.seconds = rates.floor_s + whole_s;
    plan.power_limited_s = power_limited_seconds(plan.seconds, T(0.0));
    plan.bound = whole_s < rates.floor_s ? Bound::latency_floor : Bound::memory;
    return plan;
}

}  // namespace gemm

/// Chooses and times the kernel of a matrix product, without host time.
template <class T>
GemmPlan<T> plan_gemm(const GemmShape& s, const DeviceRates<T>& rates, const GemmParameters<T>& p) {
    if (gemm::is_gemv(s, rates.architecture, rates.path)) return gemm::plan_gemv(s, rates);
    const auto block = gemm::block_rates(s, rates, p);
    return gemm::plan_choice(s, gemm::choose(s, rates, p, block), rates, p, block);
}

}  // namespace ftax::kernels
