#pragma once

#include <algorithm>
#include <cmath>

#include "ftax/device.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/gemm_heuristic.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tiles.hpp"
#include "predictors/profiles/parameters.hpp"

/// Memory reads of a matrix product: operands are read once while CTAs run in step, again once they drift apart.
namespace ftax::kernels {

/// Ratios of the matrix-product kernels; efficiencies are shares of the sustained rates in DeviceRates.
struct GemmParameters {
    double fill{}, latency_cycles{}, issue_latency{}, wide_efficiency{}, narrow_efficiency{}, sliced_efficiency{},
        odd_rows{};
    double write_bandwidth{}, strided_bandwidth{}, layer_strided_bandwidth{}, strided_reduction{};
    double reread{}, skew_waves{}, skew{};
    double energy_scale{}, operand_energy{};
};

/// Initial values: a robust fit to linear and bmm rows of neusight_ops.csv over five GPUs unless stated otherwise.
inline void visit_parameters(GemmParameters& p, const ParameterVisitor& visit) {
    using P = GemmParameters;
    static const DeclaredFields<P> fields(
        "gemm", FTAX_NAMED(&P::fill, &P::latency_cycles, &P::issue_latency, &P::wide_efficiency, &P::narrow_efficiency,
                           &P::sliced_efficiency, &P::odd_rows, &P::write_bandwidth, &P::strided_bandwidth,
                           &P::layer_strided_bandwidth, &P::strided_reduction, &P::reread, &P::skew_waves, &P::skew,
                           &P::energy_scale, &P::operand_energy));
    fields.visit(p, visit);
}

namespace gemm {

/// Returns true if CTAs that share operands drift apart; those of sliced kernels do not. See shared_traffic.
inline bool has_cta_skew(const ArchitectureSpec& chip, MainLoop loop) {
    return chip.cta_skew && loop != MainLoop::sliced;
}

/// Co-resident blocks along n and m.
struct Band {
    double across = 1, down = 1;
};

/// Returns the band of a grid: its blocks are launched along n; the 128x128x8 kernels launch rows of 2 × 2 blocks
/// (columns if the number of block rows is odd).
inline Band band_of(const GemmTile& tile, double grid_columns, double grid_rows, double resident) {
    if (grid_columns * grid_rows <= resident) return {grid_columns, grid_rows};
    double widest = resident;
    if (tile.loop == MainLoop::vector) {
        const bool is_even = whole_part(0.5 * grid_rows) * 2 == grid_rows;
        widest = resident / (is_even ? 2 : grid_rows);
    }
    const double across = std::clamp(widest, 1.0, grid_columns);
    return {across, std::clamp(resident / across, 1.0, grid_rows)};
}

/// Bytes of both operands read from memory.
struct Traffic {
    double rows{};     ///< A, m × k, shared by the blocks of a row
    double columns{};  ///< B, k × n, shared by the blocks of a column
};

/// Returns the cost of an operand whose rows run along the reduction, read 32 bytes per row at a time, relative to
/// contiguous reads. Source: neusight_ops.csv, linear; docs/kernel-models/gemm-on-cuda-cores.md, strided reads.
inline double strided_cost(const GemmShape& s, MainLoop loop, const GemmParameters& p) {
    constexpr double vector_loss = 0.5;  // 16-byte loads
    const double length = real(s.k) * s.element_bytes * 0.25;
    const double length2 = length * length;
    double bandwidth = s.linear ? p.layer_strided_bandwidth : p.strided_bandwidth;
    const double loss = (1.0 / bandwidth - 1.0) * (length2 / (length2 + p.strided_reduction * p.strided_reduction));
    return 1.0 + loss * (loop == MainLoop::vector ? vector_loss : 1.0);
}

/// Returns the share of operand reads that sharing blocks repeat: each block trails the previous one by the total skew
/// over sharers^(3/4) (fits prefer exponents of 0.64 to 0.75; 3/4 needs two square roots).
inline double lost_share(double skew, double sharers) {
    const double spread = std::sqrt(sharers);
    return miss_share(skew / (spread * std::sqrt(spread)), 1);
}

/// Returns the operand traffic. Data shared by the CTAs of a band are read once while the CTAs run in step. On CUDA
/// cores before Ampere their skew grows over the waves; once what the resident blocks read meanwhile exceeds the L2,
/// rows are read again. Source: fits to neusight_ops.csv, linear; docs/kernel-models/gemm-on-cuda-cores.md, re-reads.
inline Traffic shared_traffic(const GemmShape& s, const Choice& c, double grid_columns, double grid_rows, double part,
                              const DeviceRates& rates, const GemmParameters& p) {
    const GemmTile& tile = *c.tile;
    const double batches = real(s.batch) * c.split_k;
    const double grid = grid_columns * grid_rows;
    const double resident = rates.sms * tile.resident;
    const double depth_bytes = part * s.element_bytes;
    const double inverse_l2 = 1 / rates.l2_bytes;
    const auto m = real(s.m), n = real(s.n);
    const auto [across, down] = band_of(tile, grid_columns, grid_rows, resident);
    double rows_once(m * depth_bytes), columns_once(n * depth_bytes);
    if (grid > resident) {
        const double band_rows = std::min(down * tile.rows, m);
        const double band_columns = std::min(across * tile.columns, n);
        const double row_miss = miss_share(p.reread * ((band_rows + band_columns) * depth_bytes * inverse_l2), 1);
        const double column_miss = miss_share(p.reread * (n * depth_bytes * inverse_l2), 1);
        rows_once *= 1.0 + row_miss * (grid_columns / across - 1);
        columns_once *= 1.0 + column_miss * (grid_rows / down - 1);
    }

    if (!has_cta_skew(*rates.chip, tile.loop)) return {batches * rows_once, batches * columns_once};
    const double waves = batches * grid / resident * (rates.sms * rates.sms * (1.0 / 1600));
    const double skew =
        p.skew * (waves / (p.skew_waves + waves)) * (resident * depth_bytes * inverse_l2) * tile.idle_schedulers;
    return {batches * rows_once * (1.0 + (across - 1) * lost_share(skew, across)),
            batches * columns_once * (1.0 + (down - 1) * lost_share(skew, down))};
}

}  // namespace gemm
}  // namespace ftax::kernels
