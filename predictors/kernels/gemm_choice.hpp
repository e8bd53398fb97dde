#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "ftax/device.hpp"
#include "predictors/kernels/gemm_tiles.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tiles.hpp"

/// Which kernel cuBLAS takes where the grids of the candidates decide, whatever the reduction.
namespace ftax::kernels::gemm {

/// Kernel and split of the reduction.
struct Choice {
    const GemmTile* tile = nullptr;
    double split = 1;
    bool summed_apart = false;  ///< a second kernel adds up the parts, else blocks do in the result itself
};

/// Tells whether a shape is a strided batch: products that share no operand.
inline bool is_batched(const GemmShape& s) {
    return s.batch > 1 && !s.linear;
}

/// Blocks along n and m.
inline double block_columns(const GemmShape& s, const GemmTile& tile) {
    return tiles_over_log2(s.n, tile.columns_log2);
}
inline double block_rows(const GemmShape& s, const GemmTile& tile) {
    return tiles_over_log2(s.m, tile.rows_log2);
}

/// Blocks of all products of a batch, their reductions whole.
inline double blocks_of(const GemmShape& s, const GemmTile& tile) {
    return static_cast<double>(s.batch) * block_columns(s, tile) * block_rows(s, tile);
}

/// Parts of a reduction are stored and summed apart while they fit a workspace of this many values, 1 MB in f32; more
/// of them are added up in the result. Source: neusight_ops.csv linear, first campaign: all 2,266 rows with a
/// splitKreduce kernel fit, the largest with 262,144 values; 8,942 of the 9,083 other rows with parts do not.
inline constexpr double workspace_values = 1 << 18;

inline bool is_summed_apart(const GemmShape& s, double split) {
    return split > 1 && split * static_cast<double>(s.m) * static_cast<double>(s.n) <= workspace_values;
}

/// Parts of at least 64 values that a reduction can fall into. Source: grids of neusight_ops.csv.
inline double most_parts(std::int64_t k) {
    return std::min(32.0, static_cast<double>(k / 64));
}

/// How cuBLAS weighs a kernel: padded work and a share of the slots that the last wave leaves idle, over a credit.
/// Grids of less than `slots` blocks per SM split the reduction until they fill them: into as many parts as fit the
/// workspace, of 64 values and more, or else into parts of 128 values and more.
struct GridRule {
    GemmTile tile{};
    double wave_quantization_penalty = 0;
    double credit = 1;
    double slots = 0;
    double inverse_credit = 1 / credit;
};

/// Up to five blocks for four SMs the first kernel of Pascal's rules and of Volta's for batches is taken outright.
inline constexpr double few_blocks_per_sm = 1.25;
/// Beyond it idle slots only decide between kernels of equal work.
inline constexpr double many_blocks_per_sm = 48;

/// Rules of one choice.
struct GridRules {
    std::span<const GridRule> rules;
    bool first_if_few = false;
};

/// Returns the rules of an architecture, none where one kernel is all there is or credited work decides.
/// Source: kernel and grid columns of neusight_ops.csv. The rules take the row's kernel in 98 % of a P4's and a
/// P100's layers and in 97 % of a V100's and T4's batches. Parts are right in 98 % of the P4's rows and in 90 to 95 %
/// of the P100's, whose SM holds seven 64x64 blocks.
[[nodiscard]] inline GridRules grid_rules(Architecture architecture, bool batched) {
    using namespace sgemm;
    static constexpr std::array<GridRule, 3> gp100 = {GridRule{t128x32, 0, 1, 4}, GridRule{t32x128, 3, 1, 4},
                                                      GridRule{t64x64_gp100, 0.65, 0.93, 7}};
    static constexpr std::array<GridRule, 3> pascal = {GridRule{t128x32, 0, 1, 4}, GridRule{t32x128, 2.5, 1, 4},
                                                       GridRule{t64x64, 0.5, 1, 8}};
    static constexpr std::array<GridRule, 3> volta_batched = {GridRule{t128x32}, GridRule{t32x128, 2.5},
                                                              GridRule{t64x64, 0.5}};
    static constexpr std::array<GridRule, 3> turing_batched = {GridRule{t128x64, 0.3}, GridRule{t64x64, 0, 0.82},
                                                               GridRule{t128x32, 0.44, 0.84}};
    if (architecture == Architecture::gp100 && !batched) return {gp100, true};
    if (architecture < Architecture::volta && !batched) return {pascal, true};
    if (architecture == Architecture::volta && batched) return {volta_batched, true};
    if (architecture == Architecture::turing && batched) return {turing_batched};
    return {};
}

/// Takes the kernel of least weight, of equals that whose last wave is the fullest, of these the first.
[[nodiscard]] inline Choice choose_by_grid(const GemmShape& s, const GridRules& rules, double inverse_sms) {
    const auto blocks_per_sm = [&](const GemmTile& tile) { return blocks_of(s, tile) * inverse_sms; };
    const auto choice = [&](const GridRule& rule, double blocks) {
        if (blocks >= rule.slots) return Choice{&rule.tile, 1};
        const double wanted = round_up(rule.slots / blocks);
        const double parts_that_fit =
            whole_part(workspace_values / (static_cast<double>(s.m) * static_cast<double>(s.n)));
        const double most = parts_that_fit > 1 ? std::min(parts_that_fit, static_cast<double>(s.k / 64))
                                               : static_cast<double>(s.k / 128);
        const double split = std::max(1.0, std::min(wanted, most));
        return Choice{&rule.tile, split, is_summed_apart(s, split)};
    };
    auto candidates = rules.rules;
    if (rules.first_if_few) {
        const GridRule& first = candidates.front();
        if (const double blocks = blocks_per_sm(first.tile); blocks <= few_blocks_per_sm) return choice(first, blocks);
        candidates = candidates.subspan(1);
    }
    const GridRule* best = nullptr;
    double best_blocks = 0, least = std::numeric_limits<double>::infinity(), least_idle = 0;
    for (const GridRule& rule : candidates) {
        const double blocks = blocks_per_sm(rule.tile);
        const double waves = blocks * rule.tile.inverse_resident;
        const double idle = round_up(waves) - waves;
        const double share =
            blocks > many_blocks_per_sm ? 0 : rule.wave_quantization_penalty * std::min(1.0, 0.5 / waves);
        const double weight = rule.tile.area * (blocks + share * idle * rule.tile.resident) * rule.inverse_credit;
        if (weight > least || (weight == least && idle >= least_idle)) continue;
        best = &rule;
        best_blocks = blocks;
        least = weight;
        least_idle = idle;
    }
    return choice(*best, best_blocks);
}

/// Tells whether cuBLAS itself takes another kernel than cublasLt: for f32 layers before Volta. Grids smaller than any
/// that was measured go by cublasLt's rules.
inline bool has_kernel_without_lt(const GemmShape& s, Architecture architecture, double sms) {
    constexpr double least_blocks_per_sm = 1.2;
    return s.linear && !s.through_lt && s.element_bytes >= 4 && architecture < Architecture::volta &&
           blocks_of(s, sgemm::t128x128x8) >= least_blocks_per_sm * sms;
}

/// Takes the 128x128x8 kernel for grids beyond one wave of it, 128x64 in parts of 512 values for smaller grids.
/// Source: kernel and grid columns of 974 layers of a P4, m from 512 up (neusight_ops.csv, the card's second campaign),
/// right in all but five. These had no bias: no time is left for it at k = 512. A GTX 1060 runs the layers of a
/// transformer without biases so, in the same grids (sgemm_128x128x8_NT_vec, a public trace of PyTorch 2.11); a GTX
/// 1080 Ti and a Titan X take half the time per token for 65,536 tokens, the first that PyTorch 1.12 does not give to
/// cublasLt (framework_tax.csv; github.com/pytorch/pytorch/pull/82922). In f16 the Titan X does not.
[[nodiscard]] inline Choice choose_without_lt(const GemmShape& s, double sms) {
    constexpr double part = 512;
    if (blocks_of(s, sgemm::t128x128x8) > sgemm::t128x128x8.resident * sms) return {&sgemm::t128x128x8, 1};
    const double split = ceil_div(static_cast<double>(s.k), part);
    return {&sgemm::t128x64, split, is_summed_apart(s, split)};
}

}  // namespace ftax::kernels::gemm
