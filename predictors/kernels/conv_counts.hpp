#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "ftax/device.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tiles.hpp"

/// Arithmetic and traffic of a convolution, and the tiling of its kernels.
namespace ftax::kernels {

/// Sizes of one convolution, used by all algorithms.
struct ConvCounts {
    double rows = 0;       ///< batch · output pixels
    double columns = 0;    ///< output channels of one group
    double reduction = 0;  ///< input channels of one group · taps
    double taps = 0;
    double in_bytes = 0;  ///< input rows that are read
    double out_bytes = 0;
    double weight_bytes = 0;
};

/// Counts the equivalent matrix product. A transposed convolution is the data gradient of the convolution with input
/// and output swapped: in TensorRT each input pixel takes taps · out_channels products. cuDNN's kernels gather taps for
/// each output pixel; on CUDA cores also those that fall between the strided inputs. Source: Chetlur et al., "cuDNN:
/// Efficient Primitives for Deep Learning", arXiv 1410.0759, section 3; docs/kernel-models/convolutions.md.
inline ConvCounts conv_counts(const ConvShape& s) {
    ConvCounts c;
    const double groups = real(s.groups);
    const double in_pixels = real(s.batch) * real(s.in_depth) * real(s.in_height) * real(s.in_width);
    const double out_pixels = real(s.batch) * real(s.out_depth) * real(s.out_height) * real(s.out_width);
    c.taps = real(s.kernel_d) * real(s.kernel_h) * real(s.kernel_w);
    if (s.transposed && s.library == ConvLibrary::tensorrt) {
        c.rows = in_pixels;
        c.columns = real(s.out_channels) / groups * c.taps;
        c.reduction = real(s.in_channels) / groups;
    } else {
        c.rows = out_pixels;
        c.columns = real(s.out_channels) / groups;
        c.reduction = real(s.in_channels) / groups * c.taps;
    }
    const double rows_read = s.transposed || s.stride_h <= s.kernel_h ? 1.0 : real(s.kernel_h) / real(s.stride_h);
    c.in_bytes = s.element_bytes * in_pixels * real(s.in_channels) * rows_read;
    c.out_bytes = s.element_bytes * out_pixels * real(s.out_channels);
    c.weight_bytes = s.element_bytes * real(s.in_channels) / groups * c.taps * real(s.out_channels);
    return c;
}

/// Returns the effective bytes of CUDA-core kernels, which load single elements: fp16 saves nothing.
inline double load_bytes(double bytes, const ConvShape& s) {
    return bytes * (4.0 / s.element_bytes);
}

/// Returns true if cuDNN's Winograd kernels support the shape: 3×3, stride 1, one group, two dimensions.
/// Source: cuDNN developer guide, cudnnConvolutionFwdAlgo_t.
inline bool is_winograd(const ConvShape& s) {
    return s.kernel_h == 3 && s.kernel_w == 3 && s.kernel_d == 1 && s.stride_h == 1 && s.stride_w == 1 &&
           s.dilation_h == 1 && s.dilation_w == 1 && s.groups == 1 && !s.transposed;
}

/// Tiles of the matrix products inside the non-fused Winograd algorithm, written to `tiles`.
inline std::span<const Tile> winograd_tiles(const ArchitectureSpec& chip, std::span<Tile> tiles) {
    const std::size_t count = std::min(chip.winograd_tiles.size(), tiles.size());
    for (std::size_t i = 0; i < count; ++i) {
        const ConvTile& tile = chip.winograd_tiles[i];
        tiles[i] = {tile.rows, tile.columns, tile.threads};
    }
    return tiles.first(count);
}

/// Tiles of the CUDA-core implicit GEMM kernels (pixels × channels) and of the tensor-core kernels. The last one, which
/// wins on few blocks, runs only if candidates are timed.
inline constexpr std::array<Tile, 4> implicit_tiles = {{{128, 128, 256}, {128, 64, 128}, {128, 32, 64}, {64, 64, 64}}};
inline constexpr std::array<Tile, 4> tensor_tiles = {{{128, 128, 256}, {128, 64, 128}, {128, 32, 64}, {64, 64, 128}}};

/// Counts the blocks of the fused Winograd kernel: 8×16 output pixels × 32 channels. On some generations, kernels
/// combine several images in a mosaic: the first of `mosaics` with fewer partial blocks, if it saves 15 %.
inline double winograd_fused_blocks(const ConvShape& s, int mosaics_of_chip) {
    const auto height = real(s.out_height);
    const auto width = real(s.out_width);
    struct Mosaic {
        int down, across;
    };
    static constexpr std::array<Mosaic, 5> mosaics = {{{2, 2}, {1, 2}, {2, 1}, {4, 1}, {1, 4}}};
    const std::size_t layouts = std::min<std::size_t>(static_cast<std::size_t>(mosaics_of_chip), mosaics.size());
    const auto images = [&](double down, double across) {
        return tiles_over(down * height, 8) * tiles_over(across * width, 16) / (down * across);
    };
    double fewest = images(1, 1);
    double threshold = fewest / 1.15;
    for (std::size_t i = 0; i < layouts; ++i) {
        const auto [down, across] = mosaics[i];
        if (s.batch % (down * across) != 0) continue;
        const double blocks = images(down, across);
        if (blocks < threshold) fewest = threshold = blocks;
    }
    return real(s.batch) * fewest * tiles_over(real(s.out_channels), 32);
}

}  // namespace ftax::kernels
