#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "ftax/device.hpp"
#include "predictors/kernels/gemm_choice.hpp"
#include "predictors/kernels/gemm_tiles.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tiles.hpp"

/// Which kernel cuBLAS takes where the length of the reduction counts, too: from Volta on, products without a batch.
namespace ftax::kernels::gemm {

/// How much padded work cuBLAS takes of a kernel for as much of a 128x64 one.
struct KernelCredits {
    double largest = 1;  ///< 128x128
    double square = 1;   ///< 64x64
    double narrow = 1;   ///< 16 outputs per thread
    double sliced = 1;   ///< threads share the reduction

    [[nodiscard]] constexpr double of(const GemmTile& tile) const {
        if (tile.loop == GemmLoop::narrow) return narrow;
        if (tile.loop == GemmLoop::sliced) return sliced;
        if (tile.area == sgemm::t128x64.area) return 1;
        return tile.area > sgemm::t128x64.area ? largest : square;
    }
};

/// How cuBLAS weighs the kernels of a product, see credited_work.
struct CreditRule {
    double whole = 1;           ///< share of the blocks that count in whole waves of one per SM
    double fill = 0;            ///< start and end of a block, in values of the reduction
    double long_reduction = 0;  ///< reductions beyond it have credits of their own
    KernelCredits usual, of_long;
    double enough = 1;  ///< blocks per SM from which on the reduction is not split to fill them
    double wanted = 1;  ///< and how many its parts make up
    double split_penalty = 1;
    bool split_k_candidates = false;  ///< two and three parts of larger grids are weighed, too
};

/// Returns the rule of an architecture.
/// Source: kernel and grid columns of neusight_ops.csv linear. Where there are more than four 128x64 blocks per SM, a
/// V100 takes 128x128 kernels in 5 % of the rows up to reductions of 8,192, in 22 % up to 14,336 and in 94 % up to
/// 57,344; an A100 takes sliced ones in 0.3 % up to 28,672, in 22 % up to 32,768 and in 87 % beyond. The other
/// constants are fits to the error of the time with the kernel they choose, which is 0.2 to 0.5 points more than with
/// the row's kernel. They choose the row's tile in 55 % of a V100's rows, 60 % of an A100's and 67 % of a T4's; the
/// others run about as long. A T4's narrow and sliced kernels, whose SM reads half as much shared memory per cycle,
/// have four fifths of a V100's credits.
[[nodiscard]] inline const CreditRule& credit_rule(Architecture architecture) {
    static constexpr CreditRule volta{.fill = 290,
                                      .long_reduction = 14336,
                                      .usual = {.largest = 0.87, .narrow = 0.85, .sliced = 0.67},
                                      .of_long = {.largest = 1.08, .narrow = 0.85, .sliced = 0.67},
                                      .enough = 2,
                                      .wanted = 5.5,
                                      .split_k_candidates = true};
    static constexpr CreditRule turing{.fill = 45,
                                       .long_reduction = 14336,
                                       .usual = {.largest = 1.025, .square = 0.86, .narrow = 0.68, .sliced = 0.56},
                                       .of_long = {.largest = 1.12, .square = 0.86, .narrow = 0.68, .sliced = 0.56},
                                       .enough = 2,
                                       .wanted = 4.1,
                                       .split_k_candidates = true};
    static constexpr CreditRule ampere{.whole = 0.62,
                                       .fill = 290,
                                       .long_reduction = 32768,
                                       .usual = {.narrow = 0.95, .sliced = 0.775},
                                       .of_long = {.narrow = 0.95, .sliced = 1},
                                       .enough = 1.5,
                                       .wanted = 3.33,
                                       .split_penalty = 1.37};
    if (architecture == Architecture::volta) return volta;
    return architecture == Architecture::turing ? turing : ampere;
}

/// cuBLAS's estimate of a candidate: padded arithmetic, partly in whole waves, and what a lone block waits, over the
/// credit of the kernel. `part` is the length of a part of the reduction.
inline double credited_work(const GemmTile& tile, double blocks_per_sm, double split, double part,
                            const CreditRule& rule, double inverse_credit) {
    constexpr double latency = 1.1 * 4096;
    constexpr double rounding = 1e-9;  // of the inverse number of SMs
    const double waves = (1 - rule.whole) * blocks_per_sm + rule.whole * round_up(blocks_per_sm - rounding) +
                         latency * tile.inverse_work;
    return tile.area * waves * (part + rule.fill) * (split > 1 ? rule.split_penalty : 1) * inverse_credit;
}

/// Takes the least credited work.
[[nodiscard]] inline Choice choose_by_credit(const GemmShape& s, std::span<const GemmTile> tiles,
                                             const CreditRule& rule, double inverse_sms) {
    const auto k = static_cast<double>(s.k);
    const auto part = [k](double split) { return 8 * round_up(k / split * 0.125); };
    const KernelCredits& credits = k > rule.long_reduction ? rule.of_long : rule.usual;
    const double longest = most_parts(s.k);
    const double whole = part(1);
    const int few = rule.split_k_candidates ? static_cast<int>(std::min(3.0, 0.5 * longest)) : 1;
    const std::array<double, 2> split_k_candidates = {part(2), part(3)};

    Choice best{&tiles.front(), 1};
    double least = std::numeric_limits<double>::infinity();
    for (const GemmTile& tile : tiles) {
        const double blocks_per_sm = blocks_of(s, tile) * inverse_sms;
        const double inverse_credit = 1 / credits.of(tile);
        // However split, a kernel does its arithmetic.
        if (tile.area * blocks_per_sm * (k + rule.fill) * inverse_credit >= least) continue;
        const auto consider = [&](double split, double length) {
            const double work = credited_work(tile, blocks_per_sm * split, split, length, rule, inverse_credit);
            if (work >= least) return;
            least = work;
            best = {&tile, split};
        };
        consider(1, whole);
        if (blocks_per_sm >= rule.enough) {
            for (int split = 2; split <= few; ++split)
                consider(split, split_k_candidates[static_cast<std::size_t>(split - 2)]);
            continue;
        }
        const double split = std::min(whole_part(rule.wanted / blocks_per_sm + 0.5), longest);
        if (split > 1) consider(split, part(split));
    }
    best.summed_apart = is_summed_apart(s, best.split);
    return best;
}

/// Chooses kernel and parts of a product on CUDA cores as cuBLAS does: no fitted value decides.
[[nodiscard]] inline Choice choose_on_cores(const GemmShape& s, Architecture architecture, double sms) {
    if (has_kernel_without_lt(s, architecture, sms)) return choose_without_lt(s, sms);
    const bool batched = is_batched(s);
    if (const GridRules rules = grid_rules(architecture, batched); !rules.rules.empty()) {
        return choose_by_grid(s, rules, 1 / sms);
    }
    const auto tiles = gemm_tiles(architecture, MathPath::fp32, batched);
    if (tiles.size() == 1) return {&tiles.front(), 1};
    return choose_by_credit(s, tiles, credit_rule(architecture), 1 / sms);
}

}  // namespace ftax::kernels::gemm
