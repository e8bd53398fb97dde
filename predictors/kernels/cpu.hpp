#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "ftax/device.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/profiles/parameters.hpp"

/// Times of operators on a CPU: PyTorch's own loops, MKL's matrix products and oneDNN's convolutions.
namespace ftax::kernels {

struct CpuParameters {
    double gemm_flops_per_s{}, conv_flops_per_s{}, depthwise_flops_per_s{};  ///< sustained, all threads
    double gemm_rows{}, gemm_depth{};  ///< rows and depth at which a matrix product reaches half its rate
    double conv_columns{};             ///< output row width at which a convolution reaches half its rate
    double conv_channels{};            ///< input channels × filter at which it does so
    double l2_bytes_per_s{}, l3_bytes_per_s{}, memory_bytes_per_s{};
    double l3_bytes{};            ///< usable share of the last-level cache
    double weight_bytes_per_s{};  ///< weights, which are outside the inner caches in every pass
    double relayout_passes{};     ///< extra passes over a convolution's operands for layout changes
    double fault_bytes_per_s{};   ///< first touch of freshly mapped pages
    std::array<double, memory_class_count> element_s{};  ///< arithmetic per element (per window element of pooling)
};

/// Initial values: order of magnitude of one core of a 2023 server; the data give rates and times of one thread.
inline void visit_parameters(CpuParameters& p, const DeviceSpec& device, const ParameterVisitor& visit) {
    using P = CpuParameters;
    static const DeclaredFields<P> fields(
        "cpu",
        FTAX_NAMED(&P::gemm_flops_per_s, &P::conv_flops_per_s, &P::depthwise_flops_per_s, &P::gemm_rows, &P::gemm_depth,
                   &P::conv_columns, &P::conv_channels, &P::l2_bytes_per_s, &P::l3_bytes_per_s, &P::memory_bytes_per_s,
                   &P::l3_bytes, &P::weight_bytes_per_s, &P::relayout_passes, &P::fault_bytes_per_s));
    const double threads = device.sms;
    fields.visit(p, [&](std::string_view name, double& value, ParameterSpec spec) {
        if (name.ends_with("_per_s")) spec.initial *= threads, spec.lower *= threads, spec.upper *= threads;
        visit(name, value, spec);
    });
    constexpr std::array<std::string_view, memory_class_count> names{
        "pointwise",  "transcendental", "power", "copy",   "transpose", "reduce", "softmax", "layer_norm",
        "batch_norm", "group_norm",     "pool",  "gather", "concat",    "resize", "sort"};
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string name = "cpu.element_s." + std::string(names[i]);
        ParameterSpec spec = *declared_parameter(name);
        spec.initial /= threads, spec.lower /= threads, spec.upper /= threads;
        visit(name, p.element_s[i], spec);
    }
}

struct CpuModel {
    DeviceSpec device;
    CpuParameters parameters;

    /// Output size from which the allocator maps new pages on every call; each page then costs a page fault.
    /// Source: glibc, M_MMAP_THRESHOLD_MAX of 64-bit systems.
    static constexpr double mapped_anew_bytes = 32.0 * (1 << 20);
    /// Minimum elements per thread. Source: at::internal::GRAIN_SIZE.
    static constexpr double grain_elements = 32768;
    /// Channels per block of an f32 layout. Source: oneDNN, nChw16c of AVX-512; nChw8c pads less.
    static constexpr double block_channels = 16;

    [[nodiscard]] double busy_share(double elements) const {
        const double threads = device.sms;
        return std::min(threads, std::max(1.0, std::floor(elements / grain_elements))) / threads;
    }

    /// Returns the seconds per byte for a working set of `bytes`, with smooth transitions between cache levels.
    [[nodiscard]] double seconds_per_byte(double bytes) const {
        const CpuParameters& p = parameters;
        const double l2 = bytes / device.l2_bytes;
        const double in_l2 = 1 / (1 + l2 * l2);
        const double l3 = double(bytes) / p.l3_bytes;
        const double in_l3 = 1.0 / (1.0 + l3 * l3);
        return in_l2 / p.l2_bytes_per_s +
               (1 - in_l2) * (in_l3 / p.l3_bytes_per_s + (1.0 - in_l3) / p.memory_bytes_per_s);
    }

    [[nodiscard]] double fault_s(double written_bytes) const {
        if (written_bytes < mapped_anew_bytes) return 0.0;
        return written_bytes / parameters.fault_bytes_per_s;
    }

    /// Returns the share of the full rate at this length; at `half` it is one half.
    static double ramp(double length, double half) { return length / (length + half); }

    [[nodiscard]] double seconds(const GemmShape& s) const {
        const CpuParameters& p = parameters;
        const auto m = real(s.m), n = real(s.n), k = real(s.k);
        const auto batch = real(s.batch);
        const double arithmetic_s =
            2 * batch * m * n * k / (p.gemm_flops_per_s * ramp(m, p.gemm_rows) * ramp(k, p.gemm_depth));
        const double moved = batch * (m * k + m * n) * s.element_bytes;
        const double right = batch * k * n * s.element_bytes;
        const double right_s = s.linear ? right / p.weight_bytes_per_s : right * seconds_per_byte(moved + right);
        return arithmetic_s + moved * seconds_per_byte(moved) + right_s + fault_s(batch * m * n * s.element_bytes);
    }

    [[nodiscard]] double seconds(const ConvShape& s) const {
        const CpuParameters& p = parameters;
        const auto count = [](auto... sides) { return (real(sides) * ...); };
        const double bytes = s.element_bytes;
        const double in_bytes = count(s.batch, s.in_channels, s.in_depth, s.in_height, s.in_width) * bytes;
        const double out_points = count(s.batch, s.out_depth, s.out_height, s.out_width);
        const double out_bytes = out_points * real(s.out_channels) * bytes;
        const double filter = count(s.kernel_d, s.kernel_h, s.kernel_w);
        const double depth = real(s.in_channels) / real(s.groups) * filter;
        const double weights = real(s.out_channels) * depth * bytes;
        const double blocked_channels =
            std::ceil(real(s.out_channels / s.groups) / block_channels) * block_channels * real(s.groups);
        const double arithmetic_s =
            is_depthwise(s)
                ? 2 * out_points * real(s.out_channels) * depth / p.depthwise_flops_per_s
                : 2 * out_points * blocked_channels * depth /
                      (p.conv_flops_per_s * ramp(real(s.out_width), p.conv_columns) * ramp(depth, p.conv_channels));
        const double passes = 1.0 + p.relayout_passes;
        return arithmetic_s +
               passes *
                   ((in_bytes + out_bytes) * seconds_per_byte(in_bytes + out_bytes) + weights / p.weight_bytes_per_s) +
               fault_s(out_bytes);
    }

    [[nodiscard]] double seconds(const MemoryShape& s) const {
        const auto read = real(s.read_bytes), written = real(s.write_bytes);
        const auto elements = real(s.elements);
        const double work = s.cls == MemoryClass::pool ? real(s.rows) * real(s.row_length) : elements;
        const double busy = busy_share(elements);
        const double traffic_s = (read + written) * seconds_per_byte(read + written);
        return (work * parameters.element_s[static_cast<std::size_t>(s.cls)] + traffic_s + fault_s(written)) / busy;
    }

    [[nodiscard]] double seconds(const GroupedGemmShape& s) const { return seconds(as_batch(s)); }
    // CPUs run neither quantising precisions (math_path()) nor fused mixtures, which occur only in measurement files.
    [[nodiscard]] double seconds(const QuantizeShape&) const { return 0.0; }
    [[nodiscard]] double seconds(const MixtureShape&) const { return 0.0; }

    /// Frameworks on a CPU run the steps of a recurrence one by one (LoweringTraits).
    [[nodiscard]] double seconds(const RecurrentShape&) const { return 0.0; }

    /// Two products and a softmax over cache-resident blocks. Source:
    /// aten/src/ATen/native/cpu/FlashAttentionKernel.cpp.
    [[nodiscard]] double seconds(const AttentionShape& s) const {
        const auto pairs =
            real(s.batch) * real(s.heads) * real(s.q_length) * real(s.kv_length) * (s.causal ? 0.5 : 1.0);
        const auto tokens = real(s.batch) * real(s.heads) * (real(s.q_length) + real(s.kv_length));
        const double moved = 2 * tokens * real(s.head_dim) * s.element_bytes;
        return 4 * pairs * real(s.head_dim) / parameters.gemm_flops_per_s +
               pairs * parameters.element_s[static_cast<std::size_t>(MemoryClass::softmax)] +
               moved * seconds_per_byte(moved);
    }
};

}  // namespace ftax::kernels
