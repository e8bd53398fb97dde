#pragma once

#include <algorithm>
#include <cmath>

#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/kernels/power.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tensor_gemm.hpp"
#include "predictors/profiles/parameters.hpp"

/// Kernels specific to TensorRT: fused attention, residual addition with layer norm. Matrix products follow
/// tensor_gemm.hpp, under the sustained load of whole networks.
/// Source: NVIDIA's tables of BERT (github.com/NVIDIA/TensorRT, demo/BERT), TensorRT 7.1 to 10.8 on A100, A30 and T4.
namespace ftax::kernels {

struct EngineParameters {
    double score_cycles{}, score_rate{}, energy_scale{};
};

inline void visit_parameters(EngineParameters& p, const ParameterVisitor& visit) {
    using P = EngineParameters;
    static const DeclaredFields<P> fields("engine", FTAX_NAMED(&P::score_cycles, &P::score_rate, &P::energy_scale));
    fields.visit(p, visit);
}

namespace engine {

/// Query rows per block, unless one computes a whole head. Source: Myelin, fmha_v2_flash_attention_fp16_128_64_S_64.
inline constexpr double query_rows = 128;
/// Query rows resident per SM: three blocks of 128 rows or one of 384. Source: the tables' ratio of both sequences.
inline constexpr double resident_rows = 384;
/// Exponentials per SM and clock. Source: CUDA C++ Programming Guide, arithmetic instructions.
inline constexpr double exponentials = 16;
/// Reference clock of the energies, which grow with the root of the clock, like voltage.
inline constexpr double reference_clock_hz = 1.5e9;

/// Returns a product shape without meaningful size, used for rates and energies of a path.
inline GemmShape unit_product(MathPath path) {
    const Precision operands = path == MathPath::int8_tensor  ? Precision::int8
                               : path == MathPath::fp8_tensor ? Precision::fp8
                                                              : Precision::fp32;
    return {.n = 64, .k = 64, .element_bytes = 2, .operands = operands};
}

/// A device and its matrix-product parameters as modified by an engine.
struct Products {
    DeviceRates device;
    TensorGemmParameters gemm;
};

/// The operand rate of TensorRT's kernels from the L2 scales with the SMs, not with L2 slices. Under its power limit a
/// board lowers its clock until energy(clock) · rate(clock) meets the limit: rate ~ (limit / power at boost)^⅔.
inline Products products(const DeviceRates& device, const EngineParameters& p, const TensorGemmParameters& gemm) {
    Products own{device, gemm};
    own.device.l2_bytes_per_clock.reset();
    // Accumulators have 32 bits for all operands, so an epilogue takes as long as for 16-bit values.
    if (device.path == MathPath::int8_tensor || device.path == MathPath::fp8_tensor) own.gemm.epilogue *= 2;
    const auto rates = tensor_gemm::rates_of(unit_product(device.path), own.device, gemm);
    const double flop_j = tensor_gemm::energy_per_flop_j(device) * energy_ratio(*device.chip, device.path);
    if (flop_j <= 0) return own;
    const double demand = flop_j * gemm.energy_scale * p.energy_scale * device.sms * rates.sm_boost_flops_per_s *
                          std::sqrt(device.boost_clock_hz / reference_clock_hz) / device.power_limit_w;
    const double share = demand < 1.0 ? 1.0 : std::pow(demand, -2.0 / 3);
    own.gemm.energy_scale = device.power_limit_w / (rates.flop_j * device.sms * share * rates.sm_boost_flops_per_s);
    return own;
}

/// Returns the time of bytes exchanged with adjacent kernels: through the L2 if they fit.
inline double memory_time(double bytes, const Products& own, const tensor_gemm::Rates& rates) {
    const double missed = tensor_gemm::miss_share(bytes / (own.gemm.l2_share * own.device.l2_bytes));
    return rates.seconds(bytes, missed);
}

/// Plans fused attention. With few blocks, a block's serial time per score dominates; with many, the SM's rate.
inline KernelPlan plan(const AttentionShape& s, const Products& own, const EngineParameters& p) {
    const DeviceRates& device = own.device;
    const auto rates = tensor_gemm::rates_of(unit_product(device.path), device, own.gemm);
    const auto queries = real(s.q_length), keys = real(s.kv_length);
    const double rows = s.whole_heads ? queries : std::min(queries, query_rows);
    const double heads = real(s.batch) * real(s.heads);
    const auto head_dim = real(s.head_dim);
    const double clock_hz = own.gemm.clock * device.boost_clock_hz;
    KernelPlan plan;
    plan.algorithm = "fmha_v2";
    plan.blocks = heads * std::ceil(queries / rows);
    plan.blocks_per_sm = std::max(1.0, resident_rows / rows);
    const double blocks_per_sm = plan.blocks / device.sms;
    plan.waves = blocks_per_sm / plan.blocks_per_sm;
    const double scores = rows * (s.causal ? (keys + rows) / 2 : keys);
    const double peak_flops_per_cycle = device.peak_flops_per_s / device.sms / device.boost_clock_hz;
    const double alone = (p.score_cycles + 4 * head_dim / (p.score_rate * peak_flops_per_cycle)) *
                         tensor_gemm::waves(plan.waves, own.gemm.wave_sharpness);
    const double arithmetic = 4 * head_dim * clock_hz / rates.sm_boost_flops_per_s;
    const double together =
        std::max(arithmetic, 1 / exponentials) * tensor_gemm::waves(blocks_per_sm, own.gemm.wave_sharpness);
    plan.compute_s = scores * std::max(alone, together) / clock_hz;
    const double kv_heads = real(s.batch) * real(s.kv_heads > 0 ? s.kv_heads : s.heads);
    plan.memory_s = memory_time(s.element_bytes * head_dim * 2 * (heads * queries + kv_heads * keys), own, rates);
    plan.floor_s = own.gemm.floor_s * rates.cycle_scale;
    plan.seconds = plan.floor_s + tensor_gemm::overlap(plan.compute_s, plan.memory_s);
    plan.power_limited_s = power_limited_seconds(plan.seconds, flops(s) / (rates.sm_flops_per_s * device.sms), device);
    return plan;
}

/// Plans a residual addition with layer norm: rows stay in registers, each value is read or written once.
inline KernelPlan plan(const MemoryShape& s, const Products& own) {
    const auto rates = tensor_gemm::rates_of(unit_product(own.device.path), own.device, own.gemm);
    KernelPlan plan;
    plan.algorithm = "skip-layer-norm";
    plan.blocks = real(s.rows);
    plan.blocks_per_sm = own.device.max_threads_per_sm / plan.threads_per_block;
    plan.waves = plan.blocks / (own.device.sms * plan.blocks_per_sm);
    plan.memory_s = memory_time(real(s.read_bytes) + real(s.write_bytes), own, rates);
    plan.floor_s = own.gemm.floor_s * rates.cycle_scale;
    plan.seconds = plan.floor_s + plan.memory_s;
    plan.power_limited_s = power_limited_seconds(plan.seconds, 0.0, own.device);
    return plan;
}

}  // namespace engine
}  // namespace ftax::kernels
