#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "ftax/equations.hpp"
#include "ftax/predict.hpp"
#include "predictors/kernels/conv_counts.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/kernels/power.hpp"
#include "predictors/kernels/residency.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tiles.hpp"
#include "predictors/profiles/parameters.hpp"

/// Time of a convolution's kernels, using the cheapest algorithm that cuDNN has for the shape and math path.
/// docs/kernel-models/convolutions.md has the table of algorithms.
namespace ftax::kernels {

/// Ratios of the convolution kernels. Efficiencies are shares of the sustained rate in DeviceRates.
struct ConvParameters {
    double wave_sharpness{}, fill_steps{}, latency_256{}, latency_128{}, latency_64{}, core_efficiency{},
        energy_scale{};
    double winograd4_efficiency{}, winograd2_efficiency{};
    double operand_bandwidth{}, filter4_bandwidth{}, stream_bandwidth{}, layout_bandwidth{};
    double tensor_efficiency{}, tensor_narrow_efficiency{};
    double depthwise_rate{}, depthwise_steps{}, depthwise_half_rate{}, depthwise_cudnn_steps{};
    double engine_rate{}, engine_bandwidth{};
    double product_energy_scale{}, product_efficiency{};  ///< of tensor_gemm
    ResidencyParameters residency;  ///< shared with memory-bound kernels; unset in fits of CUDA-core kernels
};

inline void visit_parameters(ConvParameters& p, const ParameterVisitor& visit) {
    using P = ConvParameters;
    static const DeclaredFields<P> fields(
        "conv", FTAX_NAMED(&P::wave_sharpness, &P::fill_steps, &P::latency_256, &P::latency_128, &P::latency_64,
                           &P::core_efficiency, &P::energy_scale, &P::winograd4_efficiency, &P::winograd2_efficiency,
                           &P::operand_bandwidth, &P::filter4_bandwidth, &P::stream_bandwidth, &P::layout_bandwidth,
                           &P::tensor_efficiency, &P::tensor_narrow_efficiency, &P::depthwise_rate, &P::depthwise_steps,
                           &P::depthwise_half_rate, &P::depthwise_cudnn_steps, &P::engine_rate, &P::engine_bandwidth));
    fields.visit(p, visit);
}

enum class ConvAlgorithm : std::uint8_t {
    implicit_gemm,      ///< CUDA cores, (batch·pixels) × (channels·taps) × out_channels
    winograd_fused,     ///< F(2×2, 3×3) in one kernel after a filter transform
    winograd_nonfused,  ///< F(4×4, 3×3): transforms of data, filter and output around 36 matrix products
    fft,                ///< Fourier transforms of tiles instead, products of complex numbers
    tensor_gemm,        ///< implicit GEMM on tensor cores in NHWC, between layout changes if activations are NCHW
    depthwise,          ///< one filter per channel
};

[[nodiscard]] constexpr std::string_view name_of(ConvAlgorithm algorithm) {
    constexpr std::array<std::string_view, 6> names = {"implicit-gemm", "winograd-fused", "winograd-nonfused",
                                                       "fft",           "tensor-gemm",    "depthwise"};
    return names[static_cast<std::size_t>(algorithm)];
}

namespace convolution {

inline double latency_of(const ConvParameters& p, int threads) {
    return threads >= 256 ? p.latency_256 : threads >= 128 ? p.latency_128 : p.latency_64;
}

/// Returns true if the library times candidates, which then include small tiles and split reductions.
inline bool is_timed(const ConvShape& s) {
    return s.library == ConvLibrary::cudnn_timed || s.library == ConvLibrary::tensorrt;
}

inline double most_parts(const ConvShape& s) {
    return s.library == ConvLibrary::tensorrt ? 16 : is_timed(s) ? 2 : 1;
}

/// Bytes of the 36 planes of transformed data and products of the non-fused Winograd algorithm.
inline double winograd_planes_bytes(const ConvShape& s, double patches) {
    return 36 * s.element_bytes * patches * real(s.in_channels + s.out_channels);
}
inline double winograd_patches(const ConvShape& s) {
    return 16 * tiles_over(real(s.batch), 16) * tiles_over(real(s.out_height), 4) * tiles_over(real(s.out_width), 4);
}

inline std::span<const Tile> available(std::span<const Tile> tiles, const ConvShape& s) {
    return is_timed(s) ? tiles : tiles.first(3);
}

/// Returns the share of the CUDA cores' sustained rate that the library's main loops reach.
inline double core_efficiency(const ConvShape& s, const ConvParameters& p) {
    return s.library == ConvLibrary::tensorrt ? p.core_efficiency * p.engine_rate : p.core_efficiency;
}

inline void set_grid(KernelPlan& plan, const Tile& tile, double waves, const DeviceRates& rates) {
    plan.tile = {{}, tile.columns, tile.rows};
    plan.blocks_per_sm = tile.resident;
    plan.threads_per_block = tile.threads;
    plan.waves = waves;
    plan.blocks = waves * tile.resident * rates.sms;
}

/// Returns the plan with the least arithmetic time among `tiles` for `count` products of rows × columns × reduction.
/// A block computes 2·rows·columns·(reduction + fill) operations at its SM's share of the rate.
/// The main loop takes `step` values of the reduction at a time. Source: the form of gemm::block_time.
inline KernelPlan cheapest_tile(std::span<const Tile> tiles, double count, double rows, double columns,
                                double reduction, double step, const DeviceRates& rates, double efficiency,
                                const ConvParameters& p, double narrow_efficiency, double most_parts = 1) {
    const Tile* best = &tiles.front();
    double best_waves = 0;
    double least_s = std::numeric_limits<double>::infinity();
    const double sm_s_per_flop = rates.sms / (rates.flops_per_s * efficiency);
    const double narrow_cost = 1.0 / narrow_efficiency;
    for (double parts = 1; parts <= most_parts; parts *= 2) {
        const double depth = p.fill_steps * step + round_up(reduction / parts, step);
        const double s_per_output = 2.0 * depth * sm_s_per_flop;
        // A split reduction fills idle SMs; a second kernel adds the f32 partial sums.
        const double sums_s =
            parts > 1 ? count * rows * columns * 8 * parts / rates.bandwidth_bytes_per_s + rates.floor_s : 0.0;
        for (const Tile& tile : tiles) {
            const double blocks_per_sm = count * parts * tiles_over(rows, tile.rows, tile.inverse_rows) *
                                         tiles_over(columns, tile.columns, tile.inverse_columns) / rates.sms;
            double block_s = s_per_output * (tile.rows * tile.columns);
            if (tile.columns < 128) block_s *= narrow_cost;
            if (tile.rows < 128) block_s *= narrow_cost;
            // Lower bound of the time; rejects most large tiles on small outputs.
            if (block_s * std::max(blocks_per_sm, 1.0) >= least_s) continue;
            const double latency = latency_of(p, tile.threads);
            const double time =
                sums_s + block_s * wave_time_of_squared_latency(blocks_per_sm, tile.resident, tile.inverse_resident,
                                                                latency * latency, p.wave_sharpness);
            if (time < least_s) {
                least_s = time;
                best = &tile;
                best_waves = blocks_per_sm * tile.inverse_resident;
            }
        }
    }
    KernelPlan plan;
    plan.compute_s = least_s;
    set_grid(plan, *best, best_waves, rates);
    return plan;
}

/// Completes a plan: `extra_s` is the time before and after the main kernel, `floors` the least of all launches.
inline KernelPlan finish(KernelPlan plan, ConvAlgorithm algorithm, double memory_s, double extra_s, double floors,
                         double arithmetic_s, const DeviceRates& rates) {
    plan.algorithm = name_of(algorithm);
    plan.memory_s = memory_s;
    const double main_s = equations::smooth_maximum(plan.compute_s, memory_s);
    plan.seconds = main_s + extra_s + floors;
    plan.power_limited_s = power_limited_seconds(plan.seconds, arithmetic_s, rates);
    plan.floor_s = floors;
    return plan;
}

/// Energy of an f32 operation in an engine relative to benchmarks of lone kernels, whose values are random: after a
/// ReLU half of them are zero. Source: PaddleClas and mmdeploy in fp32 on a T4 (TensorRT 8.0, 7.2); zeros take an A100
/// 0.87 of the time of random numbers (thonking.ai, "Strangely, Matrix Multiplications on GPUs Run Faster …").
inline constexpr double engine_energy = 0.75;

/// Returns the power of a main loop, see power_ratio. That of cuDNN's tensor-core kernels is within the limit already.
inline double arithmetic_power(const ConvShape& s, const DeviceRates& rates, const ConvParameters& p) {
    const double ratio = power_ratio(rates, p.energy_scale);
    if (s.library != ConvLibrary::tensorrt) return is_tensor(rates.path) ? std::min(ratio, 1.0) : ratio;
    return is_tensor(rates.path) ? ratio : engine_energy * ratio;
}

/// Completes a plan of matrix products, whose energy is that of their arithmetic.
inline KernelPlan finish_product(const KernelPlan& product, ConvAlgorithm algorithm, double memory_s, double extra_s,
                                 int kernels, const ConvShape& s, const DeviceRates& rates, const ConvParameters& p) {
    const double floors = kernels * rates.floor_s + beyond_measured_floor_s(4.2, rates);
    const double arithmetic_s = product.compute_s * arithmetic_power(s, rates, p);
    return finish(product, algorithm, memory_s, extra_s, floors, arithmetic_s, rates);
}

/// Returns the time of the activations that one kernel reads and writes, at the full memory rate: outputs of the
/// previous kernel are in the L2 if they fit.
inline double activations_seconds(double bytes, const DeviceRates& rates, const ConvParameters& p) {
    return bytes * seconds_per_byte(bytes, rates, p.residency);
}

/// Returns the time of the traffic of a kernel whose activations may be in the L2 and whose weights are not. From
/// Ampere on, an engine's tensor-core kernels copy operands asynchronously, as cuDNN's do.
inline double operands_seconds(double activation_bytes, double weight_bytes, const ConvShape& s,
                               const DeviceRates& rates, const ConvParameters& p) {
    const bool waits = s.library == ConvLibrary::tensorrt && !rates.chip->asynchronous_copies;
    const double share = waits ? p.engine_bandwidth : p.stream_bandwidth;
    return (activations_seconds(activation_bytes, rates, p) + weight_bytes / rates.bandwidth_bytes_per_s) / share;
}

/// From Ampere on, kernels (sm80_xmma_…_ffma_…) copy operands asynchronously and move them as tensor-core kernels do.
inline KernelPlan plan_implicit_gemm(const ConvCounts& c, const ConvShape& s, const DeviceRates& rates,
                                     const ConvParameters& p, std::optional<std::span<const Tile>> tiles = {}) {
    const auto plan = cheapest_tile(tiles.value_or(available(implicit_tiles, s)), real(s.groups), c.rows, c.columns,
                                    c.reduction, 8, rates, core_efficiency(s, p), p, 1.0, most_parts(s));
    const double bytes = c.in_bytes + c.out_bytes;
    const bool engine = s.library == ConvLibrary::tensorrt;
    const double bandwidth = rates.bandwidth_bytes_per_s * (engine ? p.engine_bandwidth : p.operand_bandwidth);
    const double memory_s = rates.chip->asynchronous_copies && !engine
                                ? operands_seconds(bytes, c.weight_bytes, s, rates, p)
                                : load_bytes(bytes + c.weight_bytes, s) / bandwidth;
    return finish_product(plan, ConvAlgorithm::implicit_gemm, memory_s, 0.0, 1, s, rates, p);
}

/// F(2×2, 3×3): 16 products for 4 outputs; the filter transform reads 9 and writes 16 planes. An engine holds its
/// filters transformed. Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", arXiv 1509.09308.
/// Halves are converted in the main loop (maxwell_fp16_scudnn_winograd_fp16_fp32_128x128_…) and take 1.4 times as long.
inline KernelPlan plan_winograd_fused(const ConvCounts& c, const ConvShape& s, const DeviceRates& rates,
                                      const ConvParameters& p) {
    KernelPlan plan;
    const double blocks = winograd_fused_blocks(s, rates.chip->winograd_mosaics);
    plan.tile = {{}, 32, 128};
    plan.threads_per_block = 256;
    plan.blocks = blocks;
    const double depth = p.fill_steps * 8.0 + round_up(real(s.in_channels), 8);
    const double share = s.element_bytes < 4 ? p.winograd2_efficiency / 1.4 : p.winograd2_efficiency;
    const double sm_rate = rates.flops_per_s / rates.sms * core_efficiency(s, p) * share;
    plan.compute_s = depth * (2.0 * 16 * 32 * 32) / sm_rate * wave_time(blocks / rates.sms, 1, 0.0, p.wave_sharpness);
    plan.waves = blocks / rates.sms;
    const double bandwidth = rates.bandwidth_bytes_per_s * p.operand_bandwidth;
    const bool transformed = s.library == ConvLibrary::tensorrt;
    const double filter_bytes = transformed ? c.weight_bytes * (16.0 / 9) : 0;
    const double memory_s = load_bytes(c.in_bytes + c.out_bytes + filter_bytes, s) / bandwidth;
    const double filter_s = transformed ? 0 : c.weight_bytes * (25.0 / 9) / bandwidth;
    return finish_product(plan, ConvAlgorithm::winograd_fused, memory_s, filter_s, transformed ? 1 : 2, s, rates, p);
}

/// Products of transformed tiles, one for each plane, between kernels that transform data, filters and results: cuDNN's
/// F(4×4, 3×3), TensorRT's FFT_TILING. Source: Lavin and Gray, arXiv 1509.09308; docs/kernel-models/convolutions.md.
inline KernelPlan plan_with_transforms(const ConvCounts& c, const ConvShape& s, const DeviceRates& rates,
                                       const ConvParameters& p) {
    const bool fft = s.library == ConvLibrary::tensorrt;
    const double side = std::max(s.out_height, s.out_width) + 2 <= 16 ? 16 : 32;
    const auto fft_tiles = [&](std::int64_t pixels) { return std::ceil(real(pixels) / (side - 2)); };
    const double products = fft ? side * (side / 2 + 1) : 36;
    const double tiles = fft ? real(s.batch) * fft_tiles(s.out_height) * fft_tiles(s.out_width) : winograd_patches(s);
    const auto in_channels = real(s.in_channels), out_channels = real(s.out_channels);
    std::array<Tile, 4> winograd{};
    const auto plan = cheapest_tile(fft ? available(implicit_tiles, s) : winograd_tiles(*rates.chip, winograd),
                                    products, tiles, out_channels, fft ? 3 * in_channels : in_channels, 8, rates,
                                    fft ? core_efficiency(s, p) : p.core_efficiency * p.winograd4_efficiency, p, 1.0);
    const double value_bytes = products * (fft ? 8 : s.element_bytes);
    const double data_bytes = value_bytes * tiles * in_channels, product_bytes = value_bytes * tiles * out_channels;
    const double filter_bytes = value_bytes * in_channels * out_channels;
    const double memory_s = (data_bytes + product_bytes + filter_bytes) / rates.bandwidth_bytes_per_s;
    const double transforms_s = ((c.in_bytes + data_bytes + product_bytes + c.out_bytes) / p.operand_bandwidth +
                                 (c.weight_bytes + filter_bytes) / p.filter4_bandwidth) /
                                rates.bandwidth_bytes_per_s;
    const auto algorithm = fft ? ConvAlgorithm::fft : ConvAlgorithm::winograd_nonfused;
    return finish_product(plan, algorithm, memory_s, transforms_s, 4, s, rates, p);
}

/// Returns true if tensor-core kernels need no layout copy: NHWC activations, and NCHW activations if both layouts
/// coincide or the convolution is a plain matrix product: with a 1x1 filter an image is the product of the weights and
/// its channels. Pixel rows must be 16-byte aligned, since cuDNN 9 four-byte aligned in fp16. Before cuDNN 9, TF32
/// kernels always copy. Source: framework_tax.csv; docs/kernel-models/convolutions.md.
inline bool is_laid_out(const ConvShape& s, const ConvCounts& c, MathPath path) {
    if (s.channels_last) return true;
    if (c.taps > 1 || s.stride_h > 1 || s.stride_w > 1 || (path == MathPath::tf32 && s.older_library)) return false;
    const std::int64_t pixels = s.out_depth * s.out_height * s.out_width;
    return pixels == 1 || is_aligned(pixels, s.element_bytes, s.element_bytes == 2 && !s.older_library ? 4 : 16);
}

/// Returns the number of groups that tensor-core kernels compute as one block-diagonal product of 32 × 32 channels:
/// narrow groups whose widths are powers of two (sm86_xmma_fprop_implicit_gemm_…_tilesize64x64x64_…_g8_…).
inline double merged_groups(const ConvShape& s) {
    if (s.groups == 1) return 1;
    constexpr std::int64_t channels = 32;
    const std::int64_t in_width = s.in_channels / s.groups, out_width = s.out_channels / s.groups;
    const auto is_power_of_two = [](std::int64_t width) { return width > 0 && (width & (width - 1)) == 0; };
    if (!is_power_of_two(in_width) || !is_power_of_two(out_width)) return 1;
    const std::int64_t merged = channels / std::min(channels, std::max(in_width, out_width));
    return s.groups % merged == 0 ? real(merged) : 1;
}

inline bool is_half(const ConvShape& s, MathPath path) {
    return s.element_bytes < 4 && path != MathPath::fp32;
}

/// Returns true if the main loop processes one tap after the other, 128 bytes of channels at a time, in tiles of at
/// least 64 columns (sm80_xmma_dgrad_…_tilesize256x64x32). cuDNN combines few channels of several taps only in 2-D.
inline bool is_by_tap(const ConvShape& s) {
    return s.library != ConvLibrary::tensorrt && (s.transposed || s.kernel_d > 1 || s.in_depth > 1);
}

/// Returns true if cuDNN computes the convolution on CUDA cores although the device has tensor cores: channels that do
/// not fill a vector, such as those of images. Tensor-core kernels exist, but gather single elements and need copies of
/// both layouts. Source: kernel names on an H100, PyTorch 2.11; docs/kernel-models/convolutions.md, layouts.
inline bool has_few_channels(const ConvShape& s) {
    constexpr std::int64_t vector = 4;
    return s.in_channels % vector != 0 && !s.channels_last && !s.transposed && s.library != ConvLibrary::tensorrt;
}

/// Share of the lanes' time that such kernels multiply where integer arithmetic, to address elements, shares them.
inline constexpr double gather_share = 0.69;

/// Returns the taps that a kernel of tensor cores multiplies per output pixel. A strided data gradient computes the
/// pixels of one phase of the stride together and skips taps between the inputs; for few channels it does so only with
/// Hopper's kernels. Source: 3-D layers on an H100 and in kernelbench.csv, docs/kernel-models/convolutions.md.
inline double gathered_taps(const ConvShape& s, const ConvCounts& c, const ArchitectureSpec& chip) {
    constexpr std::int64_t few_channels = 16;
    const bool skips = chip.operand_sharing > 1 || s.in_channels >= few_channels;
    if (!s.transposed || !skips || s.dilation_h > 1 || s.dilation_w > 1) return c.taps;
    const auto ratio = [](std::int64_t taps, std::int64_t stride) { return real((taps - 1) / stride + 1); };
    return ratio(s.kernel_d, s.stride_d) * ratio(s.kernel_h, s.stride_h) * ratio(s.kernel_w, s.stride_w);
}

/// cuDNN 9 splits the reduction of convolutions of few tiles.
inline constexpr double cudnn9_parts = 4;

/// cuDNN 9 converts layouts in tiles of 32 channels by 32 pixels or taps; returns the share by which these are padded.
inline double layout_padding(double pixels, const ConvShape& s) {
    return s.older_library ? 1 : round_up(pixels, 32) / pixels;
}

inline KernelPlan plan_tensor_gemm(const ConvCounts& c, const ConvShape& s, const DeviceRates& rates,
                                   const ConvParameters& p) {
    const double align = 16.0 / s.element_bytes;
    const double merged = merged_groups(s);
    const auto products = real(s.groups) / merged;
    const bool engine = s.library == ConvLibrary::tensorrt;
    const double taps = s.transposed && engine ? 1 : c.taps;
    const double channels = merged * c.reduction / taps;
    const double padding = round_up(channels, align) / channels;
    const double depth = is_by_tap(s) ? round_up(channels, 8 * align) * gathered_taps(s, c, *rates.chip)
                                      : round_up(channels, align) * taps;
    // Main loops take 64 values at a time in int8. Source: names of CUTLASS's kernels (i16832fprop_…_256x128_64x3).
    const double step = s.element_bytes == 1 ? 64 : 32;
    const auto tiles = is_by_tap(s) ? std::span(tensor_tiles).first(2) : available(tensor_tiles, s);
    // Hopper's own kernels for NHWC reach the full rate from 128 output channels on; those for NCHW are Ampere's.
    const bool full_rate = is_by_tap(s) || engine || (s.channels_last && merged * c.columns >= 128);
    const double share = full_rate ? 1 : rates.chip->conv_share;
    auto plan = cheapest_tile(tiles, products, c.rows, round_up(merged * c.columns, align), depth, step, rates,
                              p.tensor_efficiency * share, p, p.tensor_narrow_efficiency,
                              s.older_library || is_by_tap(s) ? most_parts(s) : std::max(most_parts(s), cudnn9_parts));
    // Idle multiprocessors leave their power to the others.
    const double efficiency = p.tensor_efficiency * share;
    const double powered = powered_share(rates, p.product_energy_scale, p.product_efficiency / efficiency);
    if (!engine) plan.compute_s *= std::max(1.0, efficiency * std::min(1.0, plan.blocks / rates.sms) / powered);
    const double in_bytes = c.in_bytes * padding;
    const double memory_s = operands_seconds(in_bytes + c.out_bytes, c.weight_bytes * padding, s, rates, p);
    if (is_laid_out(s, c, rates.path))
        return finish_product(plan, ConvAlgorithm::tensor_gemm, memory_s, 0.0, 1, s, rates, p);
    const bool writes_nchw = rates.path == MathPath::tf32 && !s.transposed;
    const auto pixels = [](std::int64_t d, std::int64_t h, std::int64_t w) { return real(d * h * w); };
    double bytes = (c.in_bytes + in_bytes) * layout_padding(pixels(s.in_depth, s.in_height, s.in_width), s);
    if (!writes_nchw) bytes += 2 * c.out_bytes * layout_padding(pixels(s.out_depth, s.out_height, s.out_width), s);
    double layout_s = activations_seconds(bytes, rates, p);
    int copies = writes_nchw ? 1 : 2;
    // cuDNN 9 converts filters to KRSC in each call.
    if (!s.older_library && !s.transposed && c.taps > 1 && s.library != ConvLibrary::tensorrt) {
        layout_s += activations_seconds(2 * c.weight_bytes * layout_padding(c.taps, s), rates, p);
        ++copies;
    }
    layout_s = layout_s / p.layout_bandwidth + copies * beyond_measured_floor_s(2, rates);
    return finish_product(plan, ConvAlgorithm::tensor_gemm, memory_s, layout_s, 1 + copies, s, rates, p);
}

/// Returns true if PyTorch runs a depthwise convolution with cuDNN: fp16 on cards with tensor cores, any NHWC shape; in
/// NCHW only square 1×1, 3×3 and 5×5 filters without dilation and with at least 32 channels.
/// Source: PyTorch aten/src/ATen/native/Convolution.cpp, use_cudnn_depthwise and
/// check_cudnn_depthwise_workload_with_filter.
inline bool is_cudnn_depthwise(const ConvShape& s, MathPath path) {
    if (s.element_bytes != 2 || path == MathPath::fp32) return false;
    if (s.channels_last) return true;
    return s.kernel_h == s.kernel_w && s.kernel_h <= 5 && s.kernel_h % 2 == 1 && s.dilation_h == 1 &&
           s.dilation_w == 1 && s.in_channels >= 32;
}

/// Outputs per row that cuDNN's NCHW depthwise kernels compute at a time; narrow maps leave lanes idle.
inline constexpr double depthwise_row_outputs = 16;

/// Taps of depthwise filters that an SM multiplies per clock in an engine; in int8 four times as many.
inline constexpr double engine_taps_per_cycle = 7;

/// One filter per channel. PyTorch's own kernel, used for f32 and wherever cuDNN is not used, assigns one output to
/// each thread, which computes its index by integer divisions before it loads taps. cuDNN's for NHWC waits for memory.
inline KernelPlan plan_depthwise(const ConvCounts& c, const ConvShape& s, const DeviceRates& rates,
                                 const ConvParameters& p) {
    KernelPlan plan;
    const bool engine = s.library == ConvLibrary::tensorrt;
    const bool own = !engine && !is_cudnn_depthwise(s, rates.path);
    double outputs = c.rows * c.columns * real(s.groups);
    if (engine) {
        const double taps_per_cycle = s.element_bytes == 1 ? 4 * engine_taps_per_cycle : engine_taps_per_cycle;
        plan.compute_s = outputs * c.reduction / (taps_per_cycle * rates.sms * rates.boost_clock_hz);
    } else if (!own && s.channels_last) {
        plan.compute_s = 2 * outputs * c.reduction / rates.fp32_flops_per_s;
    } else {
        double rate = own ? p.depthwise_rate : p.depthwise_half_rate;
        double steps = own ? p.depthwise_steps : p.depthwise_cudnn_steps;
        if (!own) outputs *= round_up(real(s.out_width), depthwise_row_outputs) / real(s.out_width);
        const double taps = (steps + c.reduction) * (9.0 / (steps + 9.0));
        plan.compute_s = 2 * outputs * taps / (rates.fp32_flops_per_s * rate);
    }
    const double share = engine ? p.engine_bandwidth : p.stream_bandwidth;
    const double memory_s = activations_seconds(c.in_bytes + c.out_bytes, rates, p) / share;
    return finish(plan, ConvAlgorithm::depthwise, memory_s, 0.0, rates.floor_s, 0.0, rates);
}

/// Plans the convolution with a given algorithm, which must support the shape.
inline KernelPlan plan_algorithm(ConvAlgorithm algorithm, const ConvCounts& c, const ConvShape& s,
                                 const DeviceRates& rates, const ConvParameters& p) {
    if (algorithm == ConvAlgorithm::implicit_gemm) return plan_implicit_gemm(c, s, rates, p);
    if (algorithm == ConvAlgorithm::winograd_fused) return plan_winograd_fused(c, s, rates, p);
    if (algorithm == ConvAlgorithm::winograd_nonfused) return plan_with_transforms(c, s, rates, p);
    return algorithm == ConvAlgorithm::tensor_gemm ? plan_tensor_gemm(c, s, rates, p) : plan_depthwise(c, s, rates, p);
}

inline bool fits_workspace(const ConvShape& s, double bytes) {
    return s.workspace_bytes == 0 || bytes <= real(s.workspace_bytes);
}

/// Returns true if cuDNN 7's heuristic always picks the same algorithm for the 3×3 filter. It does for few channels:
/// implicit GEMM before Turing, non-fused Winograd on Turing.
inline bool is_named_for_few_channels(const ConvShape& s) {
    constexpr std::int64_t few_channels = 64;
    return s.library == ConvLibrary::cudnn7_heuristic && s.in_channels <= few_channels;
}

inline double direct_seconds(const ConvCounts& c, const ConvShape& s, double core_flops_per_s,
                             const ConvParameters& p) {
    return 2 * c.rows * c.columns * c.reduction / (core_flops_per_s * core_efficiency(s, p));
}

inline DeviceRates core_rates(const DeviceRates& rates) {
    DeviceRates cores = rates;
    cores.path = MathPath::fp32;
    cores.flops_per_s = rates.fp32_flops_per_s;
    cores.energy_per_flop_j = rates.fp32_energy_per_flop_j;
    return cores;
}

/// Plans the cheapest algorithm on CUDA cores.
inline KernelPlan plan_on_cores(const ConvCounts& c, const ConvShape& s, const DeviceRates& rates,
                                const ConvParameters& p) {
    if (!is_winograd(s)) return plan_implicit_gemm(c, s, rates, p);
    const bool has_nonfused = fits_workspace(s, winograd_planes_bytes(s, winograd_patches(s)));
    if (is_named_for_few_channels(s))
        return has_nonfused && rates.chip->cudnn7_names_nonfused ? plan_with_transforms(c, s, rates, p)
                                                                 : plan_implicit_gemm(c, s, rates, p);
    auto best = has_nonfused ? plan_with_transforms(c, s, rates, p) : plan_winograd_fused(c, s, rates, p);
    // The library knows each candidate's time under the card's power limit.
    const auto consider = [&best](const KernelPlan& candidate) {
        if (within_power(candidate) < within_power(best)) best = candidate;
    };
    // The time at full rate excludes an algorithm in most cases; fused Winograd has 16 products for 36.
    const double direct_s = direct_seconds(c, s, rates.flops_per_s, p);
    if (has_nonfused && direct_s * (16.0 / 36) < within_power(best) * p.winograd2_efficiency)
        consider(plan_winograd_fused(c, s, rates, p));
    if (direct_s < within_power(best)) consider(plan_implicit_gemm(c, s, rates, p));
    return best;
}

/// Returns true if an engine's builder prefers one kernel per group to one for all: where a group's products take long.
inline bool launches_each_group(const ConvShape& s, const ConvCounts& c, const DeviceRates& rates) {
    constexpr double least_s = 0.08e-6;
    return s.launches_groups && 2 * c.rows * c.columns * c.reduction > least_s * rates.peak_flops_per_s;
}

/// Returns the plan of all groups, `whole`, with the time of one kernel for each. The host works on each as long as on
/// 4.7 launches of a recurrence, while kernels of others run. Source: the same networks at batch 1 on a T4 take 15.4
/// us in all for each group, whatever their depth and number of groups.
inline KernelPlan plan_each_group(KernelPlan whole, const ConvShape& s, const DeviceRates& rates,
                                  const ConvParameters& p) {
    constexpr double launches = 4.7;
    ConvShape one = s;
    one.groups = 1;
    one.in_channels /= s.groups;
    one.out_channels /= s.groups;
    whole.host_launches = real(s.groups) * launches;
    whole.seconds = real(s.groups) * plan_on_cores(conv_counts(one), one, rates, p).seconds;
    return whole;
}

}  // namespace convolution

/// Returns the matrix product that an engine makes of a filter over the whole input, as in the first layer of VGG's
/// head. Source: TensorRT's fully connected layers are such convolutions (IFullyConnectedLayer).
inline std::optional<GemmShape> as_product(const ConvShape& s) {
    const bool whole = s.out_height * s.out_width == 1 && s.kernel_h == s.in_height && s.kernel_w == s.in_width;
    if (s.library != ConvLibrary::tensorrt || !whole || s.kernel_h * s.kernel_w == 1 || s.groups > 1 || s.transposed ||
        s.in_depth > 1)
        return std::nullopt;
    return GemmShape{.m = s.batch,
                     .n = s.out_channels,
                     .k = s.in_channels * s.kernel_h * s.kernel_w,
                     .element_bytes = s.element_bytes,
                     .linear = true,
                     .engine = true,
                     .operands = s.operands};
}

/// Plans a convolution with the cheapest algorithm for the shape on the math path of `rates`. Excludes host time and a
/// bias added by a separate kernel. With TF32, CUDA-core kernels are candidates too and win for some 3x3 filters:
/// GeForce tensor cores are no faster at them.
inline KernelPlan plan(const ConvShape& s, const DeviceRates& rates, const ConvParameters& p) {
    using namespace convolution;
    const ConvCounts c = conv_counts(s);
    if (is_depthwise(s)) return plan_depthwise(c, s, rates, p);
    // Grouped convolutions in fp16 run on tensor cores; those in f32 and TF32, and fp16 with 1x1 filters, on CUDA
    // cores. No measurements cover TensorRT engines.
    const bool is_half = convolution::is_half(s, rates.path);
    if (s.groups > 1 && !(is_half && (c.taps > 1 || s.library == ConvLibrary::tensorrt))) {
        // f32 kernels for grouped 1x1 filters have 128 columns.
        const auto cores = core_rates(rates);
        const bool wide = c.taps == 1 && !is_half && !is_timed(s);
        const std::span<const Tile> tiles = wide ? std::span(implicit_tiles).first(1) : available(implicit_tiles, s);
        const auto whole = plan_implicit_gemm(c, s, cores, p, tiles);
        return launches_each_group(s, c, cores) ? plan_each_group(whole, s, cores, p) : whole;
    }
    if (rates.path == MathPath::fp32) return plan_on_cores(c, s, rates, p);
    if (has_few_channels(s)) {
        DeviceRates cores = core_rates(rates);
        if (rates.chip->integer_shares_lanes && s.element_bytes >= 4) cores.flops_per_s *= gather_share;
        return plan_implicit_gemm(c, s, cores, p);
    }
    // If the NHWC copies exceed the workspace, CUDA cores are used, for fp16 without Winograd.
    if (!s.channels_last && !fits_workspace(s, c.in_bytes + c.out_bytes)) {
        const auto cores = core_rates(rates);
        return s.element_bytes < 4 ? plan_implicit_gemm(c, s, cores, p) : plan_on_cores(c, s, cores, p);
    }
    auto best = plan_tensor_gemm(c, s, rates, p);
    const double tensor_s = within_power(best);
    // F(4x4) needs 36 products instead of 144.
    if (rates.path == MathPath::tf32 && !s.channels_last && is_winograd(s) && !is_named_for_few_channels(s) &&
        direct_seconds(c, s, rates.fp32_flops_per_s, p) * (36.0 / 144) < tensor_s * p.winograd4_efficiency) {
        const auto winograd = plan_on_cores(c, s, core_rates(rates), p);
        if (within_power(winograd) < tensor_s) best = winograd;
    }
    return best;
}

}  // namespace ftax::kernels
