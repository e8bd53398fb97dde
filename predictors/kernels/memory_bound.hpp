#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "ftax/equations.hpp"
#include "graphs/base/checked_math.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/kernels/power.hpp"
#include "predictors/kernels/residency.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/profiles/parameters.hpp"

/// Memory-bound kernels: floor + smooth maximum of the traffic time and the SMs' work.
/// docs/kernel-models/memory-bound.md has the classes.
namespace ftax::kernels {

struct MemoryParameters {
    ResidencyParameters residency;
    double reread_l2_share{}, reread_sm_share{}, misaligned_traffic{};
    double sfu_cost_ratio{}, layer_norm_block_cycles{}, layer_norm_step_cycles{};
    double softmax_block_cycles{}, softmax_step_cycles{}, softmax_warp_cycles{}, softmax_element_cycles{};
    double transcendental_flops{}, power_flops{};
    double scalar_elements{}, transpose_efficiency{}, reduce_efficiency{}, norm_efficiency{}, pool_efficiency{};
    double pool_step_flops{}, gather_efficiency{};
    double concat_efficiency{}, resize_efficiency{}, resize_plane_cycles{}, sort_efficiency{};
};

/// Initial values: a robust fit to softmax, layer norm and pointwise rows of neusight_ops.csv unless stated otherwise.
inline void visit_parameters(MemoryParameters& p, const ParameterVisitor& visit) {
    using R = ResidencyParameters;
    static const DeclaredFields<R> of_residency("memory", FTAX_NAMED(&R::resident_footprint, &R::l2_bytes_per_cycle));
    of_residency.visit(p.residency, visit);
    using P = MemoryParameters;
    static const DeclaredFields<P> fields(
        "memory", FTAX_NAMED(&P::reread_l2_share, &P::reread_sm_share, &P::misaligned_traffic, &P::sfu_cost_ratio,
                             &P::layer_norm_block_cycles, &P::layer_norm_step_cycles, &P::softmax_block_cycles,
                             &P::softmax_step_cycles, &P::softmax_warp_cycles, &P::softmax_element_cycles,
                             &P::transcendental_flops, &P::power_flops, &P::scalar_elements, &P::transpose_efficiency,
                             &P::reduce_efficiency, &P::norm_efficiency, &P::pool_efficiency, &P::pool_step_flops,
                             &P::gather_efficiency, &P::concat_efficiency, &P::resize_efficiency,
                             &P::resize_plane_cycles, &P::sort_efficiency));
    fields.visit(p, visit);
}

namespace memory_bound {

/// Execution of a row kernel: threads per block, passes over the row after the first, SM cycles per row.
struct RowKernel {
    double block_threads = 128;
    double extra_passes = 0;
    double cycles_per_row{};
};

/// Cycles of a root-mean-square norm relative to a layer norm, whose statistics are Welford's.
inline constexpr double rms_norm_share = 0.62;

/// Source: PyTorch 2.1 aten/src/ATen/native/cuda/layer_norm_kernel.cu (vectorized_layer_norm_kernel: a block of
/// 32 × 4 threads per row, vectors of 4 elements, statistics then normalisation).
inline RowKernel layer_norm(const MemoryShape& shape, const MemoryParameters& p) {
    const double steps = 0.25 * real(ceil_quotient(shape.row_length, 4 * 32));  // steps of its four warps
    const double share = shape.root_mean_square ? rms_norm_share : 1;
    return {128, 1, share * (p.layer_norm_block_cycles + p.layer_norm_step_cycles * steps) * p.sfu_cost_ratio};
}

/// Source: PyTorch 2.1 aten/src/ATen/native/cuda/PersistentSoftmax.cuh (up to 1,024 elements: one warp per row, two
/// rows per warp up to 128, the row padded to a power of two in registers) and SoftMax.cu (cunn_SoftMaxForward: three
/// passes, 16-byte vectors with a scalar remainder; SoftMax_getBlockSize).
inline RowKernel softmax(const MemoryShape& shape, const MemoryParameters& p) {
    const auto length = static_cast<std::uint64_t>(std::max<std::int64_t>(shape.row_length, 1));
    if (length <= 1024) {
        const double lanes_elements = real(std::max<std::uint64_t>(std::bit_ceil(length) / 32, 1));
        const double warps = length <= 128 ? 0.5 : 1.0;
        return {128, 0, warps * (p.softmax_warp_cycles + p.softmax_element_cycles * lanes_elements)};
    }
    const std::uint64_t vector = 16 / static_cast<std::uint64_t>(std::clamp(shape.element_bytes, 1, 16));
    const std::uint64_t most = std::min<std::uint64_t>(length / vector, 1024);
    const std::uint64_t threads = std::max<std::uint64_t>(std::bit_ceil((most + 1) / 2), 32);
    const std::uint64_t stride = threads * vector;
    const std::uint64_t steps = length / stride + (length % stride + threads - 1) / threads;
    const double blocks_of_128 = real(threads) / 128;
    return {real(threads), 2, blocks_of_128 * (p.softmax_block_cycles + p.softmax_step_cycles * real(steps))};
}

/// Returns the waits of a kernel with one block per row: `waits` per row, overlapped over all resident blocks.
inline double sequential_waits(double waits, double rows, double block_threads, const DeviceRates& device) {
    return waits * std::ceil(rows * block_threads / (device.sms * device.max_threads_per_sm));
}

/// A class of kernels: its name, the share of the bandwidth that it reaches (nullptr: all of it), and whether threads
/// load and store one element at a time: elementwise kernels unless their operands are contiguous and of one type (an
/// OffsetCalculator computes each element's offset), and kernels with one output per thread.
/// Source: PyTorch 1.12, aten/src/ATen/native/cuda (CUDALoops.cuh, Normalization.cuh, Shape.cu); the others read
/// vectors or are bound by index arithmetic, see below.
struct ClassTraits {
    std::string_view name;
    double MemoryParameters::*efficiency = nullptr;
    enum class Access : std::uint8_t { vectors, by_operands, elements } access = Access::vectors;
};
inline constexpr std::array<ClassTraits, memory_class_count> classes{{
    {"pointwise", nullptr, ClassTraits::Access::by_operands},
    {"transcendental", nullptr, ClassTraits::Access::by_operands},
    {"power", nullptr, ClassTraits::Access::by_operands},
    {"copy", nullptr, ClassTraits::Access::by_operands},
    {"transpose", &MemoryParameters::transpose_efficiency, ClassTraits::Access::elements},
    {"reduce", &MemoryParameters::reduce_efficiency},
    {"softmax"},
    {"layer-norm"},
    {"batch-norm", &MemoryParameters::norm_efficiency, ClassTraits::Access::elements},
    {"group-norm", &MemoryParameters::norm_efficiency},
    {"pool", &MemoryParameters::pool_efficiency},
    {"gather", &MemoryParameters::gather_efficiency, ClassTraits::Access::elements},
    {"concat", &MemoryParameters::concat_efficiency, ClassTraits::Access::elements},
    {"resize", &MemoryParameters::resize_efficiency},
    {"sort", &MemoryParameters::sort_efficiency},
}};
constexpr const ClassTraits& traits_of(MemoryClass cls) {
    return classes[static_cast<std::size_t>(cls)];
}

inline bool is_scalar_access(const MemoryShape& shape) {
    const ClassTraits::Access access = traits_of(shape.cls).access;
    return access == ClassTraits::Access::by_operands ? !shape.vectorized : access == ClassTraits::Access::elements;
}

inline double efficiency(const MemoryShape& shape, const MemoryParameters& p) {
    if (shape.cls == MemoryClass::reduce && shape.vectorized) return p.norm_efficiency;
    const auto share = traits_of(shape.cls).efficiency;
    // Fitted to stride-2 windows with 8-byte indices: 7 bytes of traffic per 5 bytes of values.
    const double of_windows = shape.cls == MemoryClass::pool && !shape.indexed ? 7.0 / 5 : 1;
    return share == nullptr ? 1 : p.*share * of_windows;
}

/// Returns how much longer than the shortest kernel one block of this one takes, in waits for memory: rows of steps
/// that follow each other. Floors fitted to whole models are averages over such kernels and include them up to their
/// excess over the shortest kernel. Source: operators of an H100, docs/kernel-models/memory-bound.md, waiting.
inline double waits_of(const MemoryShape& shape, double row_bytes, const DeviceRates& device) {
    const auto length = real(shape.row_length);
    switch (shape.cls) {
        case MemoryClass::layer_norm: {
            // Statistics, then results: where a row leaves the L1 cache it is read twice.
            const double passes = row_bytes > device.shared_memory_per_sm_bytes ? 2 : 1;
            return (shape.root_mean_square ? rms_norm_share : 1) * (1.7 + passes * std::ceil(length / 512));
        }
        case MemoryClass::softmax:
            if (length > 1024) return 3;
            return 1.6 + 0.135 * real(std::bit_ceil(static_cast<std::uint64_t>(length))) / 32;
        case MemoryClass::reduce:
            // Longer rows are shared by blocks.
            if (shape.waits > 0) return shape.waits;
            return shape.elements_per_wait > 0 ? 0 : 2 + std::min(length, 4096.0) / 384;
        case MemoryClass::batch_norm:
            // Statistics, then values; in half precision another kernel and its gap, where gaps are not apart.
            return shape.element_bytes == 2 && !device.chip->has_measured_gaps() ? 14 : 3;
        case MemoryClass::pool:
            return 2;
        case MemoryClass::gather:
            return 1;
        default:
            return is_scalar_access(shape) ? std::max(2, shape.waits) : shape.waits;
    }
}

/// Returns a plan with the grid of its class, without times: PyTorch's blocks have four warps. Each warp handles four
/// elements per thread or, in softmax, a row of up to 1,024; layer norm has one block per row.
/// Source: PyTorch aten/src/ATen/native/cuda/thread_constants.h, PersistentSoftmax.cuh, layer_norm_kernel.cu.
inline KernelPlan blocks(const MemoryShape& shape, const DeviceRates& device) {
    constexpr double elements_per_block = 512, softmax_rows_per_block = 4;
    KernelPlan plan;
    plan.algorithm = traits_of(shape.cls).name;
    plan.floor_s = device.floor_s;
    plan.threads_per_block = 128;
    plan.blocks_per_sm = device.max_threads_per_sm / plan.threads_per_block;
    const auto rows = real(shape.rows);
    const bool by_row = shape.cls == MemoryClass::layer_norm || shape.cls == MemoryClass::group_norm;
    plan.blocks = shape.cls == MemoryClass::softmax ? rows / softmax_rows_per_block
                  : by_row                          ? rows
                                                    : real(shape.elements) / elements_per_block;
    return plan;
}

/// Returns the traffic of a kernel, further passes over rows included, and the time of the arithmetic of its class.
inline std::pair<double, double> class_work(const MemoryShape& shape, const DeviceRates& device,
                                            const MemoryParameters& p) {
    const double sm_hertz = device.sms * device.boost_clock_hz;
    const auto rows = real(shape.rows);
    double traffic_bytes = real(shape.read_bytes) + real(shape.write_bytes), work_s = 0;
    if (shape.cls == MemoryClass::softmax || shape.cls == MemoryClass::layer_norm) {
        const bool is_softmax = shape.cls == MemoryClass::softmax;
        // Half of the cycles are latency, which is independent of schedulers; hence the root (fitted on a P100: 1.41).
        const double slowdown = std::sqrt(4.0 / device.chip->schedulers_per_sm);
        const auto kernel = is_softmax ? softmax(shape, p) : layer_norm(shape, p);
        const double row_bytes = real(shape.row_length) * shape.element_bytes;
        if (is_softmax && !is_aligned(shape.row_length, shape.element_bytes, 32))
            traffic_bytes *= 1.0 + p.misaligned_traffic;
        if (kernel.extra_passes > 0) {
            const double rows_in_flight = std::min(rows, device.sms * device.max_threads_per_sm / kernel.block_threads);
            const double capacity = p.reread_l2_share * device.l2_bytes +
                                    p.reread_sm_share * (device.sms * device.shared_memory_per_sm_bytes);
            traffic_bytes +=
                kernel.extra_passes * rows * row_bytes * miss_share(rows_in_flight * row_bytes / capacity, 6);
        }
        work_s = kernel.cycles_per_row * slowdown * (std::max(rows, device.sms) / sm_hertz);
    } else if (shape.cls == MemoryClass::transcendental) {
        work_s = p.transcendental_flops * real(shape.elements) / device.fp32_flops_per_s;
    } else if (shape.cls == MemoryClass::power) {
        work_s = p.power_flops * p.sfu_cost_ratio * real(shape.elements) / device.fp32_flops_per_s;
    } else if (shape.cls == MemoryClass::pool && !shape.indexed) {
        work_s = (6.4 + 0.1 * real(shape.row_length)) * device.chip->integer_product_ratio * (rows / sm_hertz);
    } else if (shape.cls == MemoryClass::pool) {
        // Each thread computes one output: six integer divisions locate its window, which it then iterates over
        // (avg_pool2d_out_cuda_frame, max_pool_forward_nchw; PyTorch 1.8 AveragePool2d.cu, DilatedMaxPool2d.cu).
        const double steps = rows * (6 + real(shape.row_length));
        work_s = p.pool_step_flops * device.chip->integer_product_ratio * steps / device.fp32_flops_per_s;
    } else if (shape.cls == MemoryClass::resize) {
        // Each thread computes one pixel of every plane (upsample_bilinear2d_out_frame, PyTorch UpSampleBilinear2d.cu).
        const double waves = std::max(real(shape.row_length) / (device.sms * device.max_threads_per_sm), 1.0);
        work_s = p.resize_plane_cycles * (rows * waves / device.boost_clock_hz);
        // Source: microsoft/onnxruntime issue 14596: 85.4 ms for 113 million outputs of five dimensions on a T4.
        constexpr double cycles_per_coordinate = 9.6;
        if (shape.coordinates > 0) work_s = cycles_per_coordinate * shape.coordinates * real(shape.elements) / sm_hertz;
    } else if (shape.cls == MemoryClass::group_norm) {
        traffic_bytes += real(shape.elements) * shape.element_bytes;  // statistics, then normalisation
    }
    return {traffic_bytes, work_s};
}

/// Returns the time in which a kernel waits for accesses one after the other.
inline double waiting_s(const MemoryShape& shape, const DeviceRates& device) {
    double seconds = 0;
    if (shape.elements_per_wait > 0) {
        // In a reduction, one thread processes a row.
        const double block_threads = shape.cls == MemoryClass::reduce ? 1 : 512;
        const double waits = real(shape.row_length) / real(shape.elements_per_wait);
        seconds =
            sequential_waits(waits, real(shape.rows), block_threads, device) * wait_cycles / device.boost_clock_hz;
    }
    const double row_bytes = real(shape.row_length) * shape.element_bytes;
    const double waits = waits_of(shape, row_bytes, device);
    // Blocks of elementwise kernels take many elements.
    const bool by_element = is_scalar_access(shape) && shape.cls != MemoryClass::gather;
    const double blocks = by_element || shape.waits > 0 ? 1 : real(shape.rows);
    const double block_threads = shape.cls == MemoryClass::softmax && shape.row_length <= 1024 ? 32
                                 : shape.cls == MemoryClass::reduce || shape.cls == MemoryClass::pool
                                     ? std::clamp(real(shape.row_length) / 4, 1.0, 128.0)
                                     : 128;
    return std::max(seconds, beyond_floor_s(sequential_waits(waits, blocks, block_threads, device), device));
}

}  // namespace memory_bound

/// Plans a memory-bound kernel. Its traffic goes to memory unless its footprint fits into the L2; further passes over a
/// row do so only if the rows in flight exceed the caches.
/// Source: kernel structure as cited above; capacities and cycles are fitted (visit_parameters).
inline KernelPlan plan(const MemoryShape& shape, const DeviceRates& device, const MemoryParameters& p) {
    const double sm_hertz = device.sms * device.boost_clock_hz;
    const auto footprint_bytes = real(shape.read_bytes) + real(shape.write_bytes);
    KernelPlan plan = memory_bound::blocks(shape, device);
    // Fitted floors are averages; an engine's reformats and shuffles are the shortest kernels.
    if (shape.engine && shape.cls == MemoryClass::transpose)
        plan.floor_s = std::min(plan.floor_s, shortest_cycles / device.boost_clock_hz);
    plan.seconds = plan.floor_s;
    if (footprint_bytes <= 0) return plan;

    auto [traffic_bytes, work_s] = memory_bound::class_work(shape, device, p);
    if (!shape.engine) work_s = std::max(work_s, memory_bound::waiting_s(shape, device));

    plan.memory_s =
        traffic_bytes * seconds_per_byte(footprint_bytes, device, p.residency) / memory_bound::efficiency(shape, p);
    // Each lane of a warp fetches a sector of its own from the L2.
    constexpr double sector_bytes = 32;
    plan.memory_s += sector_bytes * real(shape.strided_elements) / (p.residency.l2_bytes_per_cycle * sm_hertz);
    if (memory_bound::is_scalar_access(shape)) {
        // Engines pack the channels of half and int8 tensors into words. Source: TensorRT's formats kHWC8 and kCHW32.
        const double words = footprint_bytes / std::max(shape.element_bytes, shape.engine ? 4 : 1);
        const double accesses = shape.accesses > 0 && !shape.engine ? real(shape.accesses) : words;
        work_s += accesses / (p.scalar_elements * sm_hertz);
    }
    plan.compute_s = work_s;
    plan.seconds += equations::smooth_maximum(plan.memory_s, work_s);
    plan.power_limited_s = power_limited_seconds(plan.seconds, 0.0, device);
    return plan;
}

}  // namespace ftax::kernels
