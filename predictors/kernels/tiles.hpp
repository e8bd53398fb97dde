#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "predictors/kernels/shapes.hpp"

namespace ftax::kernels {

/// Rounds down a quotient of counts. Counts are doubles (products leave 64 bits), exact below 2⁵³ and whole beyond.
inline double whole_part(double quotient) {
    constexpr double all_whole = 9007199254740992.0;
    return quotient < all_whole ? real(static_cast<std::int64_t>(quotient)) : quotient;
}

/// Rounds up such a quotient.
inline double round_up(double quotient) {
    const double whole = whole_part(quotient);
    return whole + (quotient > whole ? 1.0 : 0.0);
}

/// Counts the tiles of `size`, a power of two, that cover a whole number of values: exact without dividing.
inline double tiles_over(double count, double size, double inverse_size) {
    return whole_part((count + (size - 1)) * inverse_size);
}
inline double tiles_over(double count, double size) {
    return tiles_over(count, size, 1 / size);
}

/// tiles_over for an integer and tiles of 2^size_log2, with fewer instructions.
inline double tiles_over_log2(std::int64_t count, int size_log2) {
    return real(((count - 1) >> size_log2) + 1);
}

inline double round_up(double count, double multiple) {
    return multiple * round_up(count / multiple);
}

/// Returns the number of resident blocks per SM at the register use of a matrix-product kernel.
/// Source: occupancy of cuBLAS and cuDNN sgemm kernels (about 128 registers a thread, 65,536 per SM).
constexpr double resident_blocks(int threads) {
    return threads >= 256 ? 2 : 4;
}

/// Output tile of one thread block and its number of threads. Sizes are powers of two, whose inverses multiply exactly.
struct Tile {
    constexpr Tile() = default;
    constexpr Tile(int tile_rows, int tile_columns, int block_threads)
        : rows(tile_rows),
          columns(tile_columns),
          threads(block_threads),
          resident(resident_blocks(block_threads)),
          inverse_rows(1 / rows),
          inverse_columns(1 / columns),
          inverse_resident(1 / resident) {}

    double rows = 0;
    double columns = 0;
    int threads = 0;
    double resident = 0;  ///< blocks an SM holds
    double inverse_rows = 0;
    double inverse_columns = 0;
    double inverse_resident = 0;
};

/// Returns the time of `blocks_per_sm` equal blocks on every SM, in units of one block's arithmetic at full rate.
/// r co-resident blocks take √(r² + latency²): a small r is bound by memory and issue latency. Full waves of `resident`
/// blocks are followed by a partial wave; `sharpness` 1 models discrete waves, 0 lets a block start as another ends.
inline double wave_time_of_squared_latency(double blocks_per_sm, double resident, double inverse_resident,
                                           double latency2, double sharpness) {
    const double waves = blocks_per_sm * inverse_resident;
    double stepped = 0, spread = 0;
    if (waves < 1) {  // at least the time of a single block
        const double lone2 = latency2 + 1.0;
        spread = std::sqrt(std::max(lone2, (latency2 + resident * resident) * (waves * waves)));
        const double side_by_side = round_up(blocks_per_sm);
        stepped = std::sqrt(latency2 + side_by_side * side_by_side);
    } else {
        const double full = std::sqrt(latency2 + resident * resident);
        const double whole_waves = whole_part(waves);
        const double rest = round_up(blocks_per_sm) - whole_waves * resident;
        stepped = full * whole_waves;
        if (rest > 0) stepped += std::sqrt(latency2 + rest * rest);
        spread = full * waves;
    }
    return stepped * sharpness + spread * (1.0 - sharpness);
}

inline double wave_time(double blocks_per_sm, double resident, double latency, double sharpness) {
    return wave_time_of_squared_latency(blocks_per_sm, resident, 1 / resident, latency * latency, sharpness);
}

}  // namespace ftax::kernels
