#pragma once

#include <cmath>
#include <cstdint>

/// How a grid of equal thread blocks fills a GPU.
namespace ftax::kernels {

/// Rounds a quotient of counts up. Counts are doubles (products of dimensions leave 32 bits), exact below 2⁵³.
inline double ceil_div(double count, double size) {
    const double quotient = count / size;
    const auto whole = static_cast<double>(static_cast<std::int64_t>(quotient));
    return whole + (quotient > whole ? 1.0 : 0.0);
}

inline double round_up(double count, double multiple) {
    return multiple * ceil_div(count, multiple);
}

/// Output tile of one thread block and the threads that compute it.
struct Tile {
    int rows = 0;
    int columns = 0;
    int threads = 0;
};

/// Returns how many blocks of that many threads an SM keeps resident at the register use of a matrix-product kernel.
/// Source: occupancy of cuBLAS and cuDNN sgemm kernels (about 128 registers a thread, 65,536 per SM), KERNEL_NOTES.md.
inline double resident_blocks(int threads) {
    return threads >= 256 ? 2 : 4;
}

/// Returns the time of `blocks_per_sm` equal blocks on every SM, in units of one block's arithmetic at full rate.
/// r blocks side by side take √(r² + latency²): few of them wait for memory and issue slots. Whole waves of `resident`
/// blocks are followed by the rest; `sharpness` 1 keeps these steps, 0 lets blocks start whenever another one ends.
/// Source: fits on neusight_ops.csv (KERNEL_NOTES.md, GEMM and BMM), exponent 2 in place of 2.29: a square root.
template <class T>
T wave_time_of_squared_latency(double blocks_per_sm, double resident, double inverse_resident, const T& latency2,
                               const T& sharpness) {
    using std::sqrt;
    const T full = sqrt(latency2 + resident * resident);
    const double waves = blocks_per_sm * inverse_resident;
    const auto whole_waves = static_cast<double>(static_cast<std::int64_t>(waves));
    const double rest = std::ceil(blocks_per_sm - whole_waves * resident);
    T stepped = full * whole_waves;
    if (rest > 0) stepped += sqrt(latency2 + rest * rest);
    const T spread = full * waves;
    const T one = sqrt(latency2 + 1.0);
    return stepped * sharpness + (spread < one ? one : spread) * (1.0 - sharpness);
}

template <class T>
T wave_time(double blocks_per_sm, double resident, const T& latency, const T& sharpness) {
    return wave_time_of_squared_latency(blocks_per_sm, resident, 1 / resident, T(latency * latency), sharpness);
}

}  // namespace ftax::kernels
