#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>

#include "ftax/device.hpp"
#include "ftax/types.hpp"
#include "predictors/kernels/gemm_tiles.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tiles.hpp"

/// Which kernel cuBLAS takes where the grids of the candidates decide, whatever the reduction.
namespace ftax::kernels::gemm {

/// Kernel and split of the reduction.
struct Choice {
    const GemmTile* tile = nullptr;
    double split = 1;
};

/// Tells whether a shape is a strided batch: products that share no operand.
inline bool is_batched(const GemmShape& s) {
    return s.batch > 1 && !s.linear;
}

/// Blocks along n and m.
inline double block_columns(const GemmShape& s, const GemmTile& tile) {
    return tiles_over(static_cast<double>(s.n), tile.columns, tile.inverse_columns);
}
inline double block_rows(const GemmShape& s, const GemmTile& tile) {
    return tiles_over(static_cast<double>(s.m), tile.rows, tile.inverse_rows);
}

/// How cuBLAS weighs a kernel: padded work and a share of what the last of the `slots` per SM leave idle, over a
/// credit. Grids of less than `split_below` blocks per SM split the reduction into `split_slots` blocks per SM.
struct GridRule {
    GemmTile tile{};
    double slots = 1;
    double idle_share = 0;
    double credit = 1;
    double split_below = 0, split_slots = 0;
    double inverse_slots = 1 / slots;
    double inverse_credit = 1 / credit;
};

/// Up to five blocks for four SMs the first kernel of Pascal's rules and of Volta's for batches is taken outright.
inline constexpr double few_blocks_per_sm = 1.25;

/// Rules of one choice.
struct GridRules {
    std::span<const GridRule> rules;
    bool first_if_few = false;
};

/// Returns the rules of an architecture, none where the time decides.
/// Source: kernel and grid columns of neusight_ops.csv, whose shares of rows the rules hit: linear P100 95 %, P4 92 %;
/// bmm V100 92 %, T4 97 %. The parts of split reductions are within 7 % on the P4, 21 % on the P100, whose SMs have
/// half the lanes and are given fewer blocks. Volta's choice of a layer's kernel depends on k as well.
[[nodiscard]] inline GridRules grid_rules(Architecture architecture, MathPath path, bool batched,
                                          double flops_per_cycle) {
    using namespace sgemm;
    static constexpr std::array<GridRule, 3> half_width_pascal = {
        GridRule{t128x32, 4, 0, 1, 0.8, 1.2}, GridRule{t32x128, 4, 0.8, 1}, GridRule{t64x64, 8, 0.24, 0.92}};
    static constexpr std::array<GridRule, 3> pascal = {GridRule{t128x32, 4, 0, 1, 2.7, 4}, GridRule{t32x128, 4, 0.8, 1},
                                                       GridRule{t64x64, 8, 0.24, 1, 2.7, 4}};
    static constexpr std::array<GridRule, 3> volta_batched = {GridRule{t128x32, 4}, GridRule{t32x128, 4, 0.9},
                                                              GridRule{t64x64, 8, 0.3}};
    static constexpr std::array<GridRule, 3> turing_batched = {
        GridRule{t128x64, 4, 0.2, 1}, GridRule{t64x64, 8, 0, 0.81}, GridRule{t128x32, 4, 0.44, 0.84}};
    if (is_tensor(path)) return {};
    if (architecture <= Architecture::pascal && !batched) {
        return {flops_per_cycle < 192 ? std::span<const GridRule>(half_width_pascal) : pascal, true};
    }
    if (architecture == Architecture::volta && batched) return {volta_batched, true};
    if (architecture == Architecture::turing && batched) return {turing_batched};
    return {};
}

/// Takes the kernel of least weight, of equals the first.
[[nodiscard]] inline Choice choose_by_grid(const GemmShape& s, const GridRules& rules, double inverse_sms) {
    const auto blocks_per_sm = [&](const GemmTile& tile) {
        return static_cast<double>(s.batch) * block_columns(s, tile) * block_rows(s, tile) * inverse_sms;
    };
    const auto choice = [&](const GridRule& rule, double blocks) {
        if (blocks >= rule.split_below) return Choice{&rule.tile, 1};
        const double wanted = whole_part(rule.split_slots / blocks + 0.5);
        return Choice{&rule.tile, std::max(1.0, std::min(wanted, static_cast<double>(s.k / 64)))};
    };
    auto candidates = rules.rules;
    if (rules.first_if_few) {
        const GridRule& first = candidates.front();
        if (const double blocks = blocks_per_sm(first.tile); blocks <= few_blocks_per_sm) return choice(first, blocks);
        candidates = candidates.subspan(1);
    }
    const GridRule* best = nullptr;
    double best_blocks = 0, least = std::numeric_limits<double>::infinity();
    for (const GridRule& rule : candidates) {
        const double blocks = blocks_per_sm(rule.tile);
        const double idle = round_up(blocks * rule.inverse_slots) * rule.slots - blocks;
        const double weight =
            rule.tile.area * (blocks + rule.idle_share * idle * std::min(1.0, 8 / blocks)) * rule.inverse_credit;
        if (weight >= least) continue;
        least = weight;
        best = &rule;
        best_blocks = blocks;
    }
    return choice(*best, best_blocks);
}

}  // namespace ftax::kernels::gemm
