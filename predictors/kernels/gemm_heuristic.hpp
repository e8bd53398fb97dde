#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "ftax/architecture.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tiles.hpp"

/// Heuristic by which a library chooses tile and split-K of a matrix product: the candidate of least cost.
namespace ftax::kernels::gemm {

struct Choice {
    const GemmTile* tile = nullptr;  ///< refers to a catalogue with static lifetime
    double split_k = 1;
};

/// Returns true for strided batches: products that share no operand.
inline bool is_batched(const GemmShape& s) {
    return s.batch > 1 && !s.linear;
}

inline double block_columns(const GemmShape& s, const GemmTile& tile) {
    return tiles_over_log2(s.n, tile.columns_log2);
}
inline double block_rows(const GemmShape& s, const GemmTile& tile) {
    return tiles_over_log2(s.m, tile.rows_log2);
}

inline double blocks_of(const GemmShape& s, const GemmTile& tile) {
    return real(s.batch) * block_columns(s, tile) * block_rows(s, tile);
}

/// Split-K targets this many waves, with at most 32 parts of at least 64 values.
inline constexpr double split_waves = 1.35;
inline double most_parts(std::int64_t k) {
    return std::min(32.0, real(k / 64));
}

/// Returns the split-K that fills the GPU; 1 if unsplit reductions fill a wave.
inline double split_candidate(const GemmShape& s, const GemmTile& tile, double blocks_per_sm) {
    if (is_batched(s) || blocks_per_sm >= tile.resident) return 1;
    return std::clamp(whole_part(split_waves * tile.resident / blocks_per_sm + 0.5), 1.0,
                      std::max(1.0, most_parts(s.k)));
}

/// Returns the candidate f32 kernels for a layer, a product or a batch.
inline const GemmCatalogue& catalogue(const GemmShape& s, const ArchitectureSpec& chip) {
    if (is_batched(s)) return chip.batched;
    const bool own = s.linear && s.library == BlasLibrary::cublas && s.element_bytes >= 4;
    return own && !chip.layers_without_lt.candidates.empty() ? chip.layers_without_lt : chip.layers;
}

/// cuBLAS's estimate on CUDA cores: padded work including idle slots of the last wave. It predicts cuBLAS's choice
/// better than our times, which include traffic and skew unknown to cuBLAS.
struct PaddedWork {
    const GemmShape* shape;
    double inverse_sms = 0;
    double split_penalty = 1;

    /// Start and end of a block in units of reduction depth, and the work equivalent to the latency of a lone block.
    static constexpr double fill = 60, lone_block = 2000;
    /// Blocks per SM beyond which idle slots are ignored.
    static constexpr double many_blocks = 48;

    [[nodiscard]] static double bound(const GemmCandidate&, double) { return 0; }

    [[nodiscard]] double next_split(const GemmCandidate& c, double blocks, double split_k) const {
        const double parts = split_candidate(*shape, c.tile, blocks * inverse_sms);
        return split_k < parts ? parts : 0;
    }

    [[nodiscard]] double operator()(const GemmCandidate& c, double blocks, double split_k) const {
        const double blocks_per_sm = blocks * split_k * inverse_sms;
        const double waves = blocks_per_sm * c.tile.inverse_resident;
        const double idle = (round_up(waves) - waves) * c.tile.resident;
        const double share = blocks_per_sm > many_blocks ? 0 : c.wave_quantization_penalty * std::min(1.0, 0.5 / waves);
        const double part = 8 * round_up(real(shape->k) / split_k * 0.125);
        return c.tile.area * (blocks_per_sm + share * idle + lone_block * c.tile.inverse_work) * (part + fill) *
               (split_k > 1 ? split_penalty : 1) / c.weight * (1 + 1e-9 * idle);  // ties: prefer the fullest last wave
    }
};

/// Returns the candidate and split-K that minimise cost(candidate, blocks, split_k). `cost.bound(candidate, blocks)` is
/// a lower bound of a candidate's costs, `cost.next_split(candidate, blocks, split_k)` the next split to try, or 0.
template <class Cost>
Choice choose(const GemmShape& s, const GemmCatalogue& catalogue, const Cost& cost) {
    Choice best{&catalogue.candidates.front().tile, 1};
    double least = std::numeric_limits<double>::infinity();
    for (const GemmCandidate& c : catalogue.candidates) {
        const double blocks = blocks_of(s, c.tile);
        if (cost.bound(c, blocks) >= least) continue;
        for (double split_k = 1; split_k > 0; split_k = cost.next_split(c, blocks, split_k)) {
            const double score = cost(c, blocks, split_k);
            if (score >= least) continue;
            least = score;
            best = {&c.tile, split_k};
        }
    }
    return best;
}

}  // namespace ftax::kernels::gemm
