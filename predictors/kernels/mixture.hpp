#pragma once

#include <cmath>

#include "predictors/kernels/quantized.hpp"
#include "predictors/kernels/tensor_gemm.hpp"
#include "predictors/profiles/parameters.hpp"

/// Mixture of experts: the grouped product over all experts with tokens, and the fused operator of two such products.
/// Source: structure from fits to tensor_ops.csv (moe: L40S, H100, B200, RTX PRO 6000),
/// docs/kernel-models/mixture-of-experts.md.
namespace ftax::kernels {

/// Ratios of grouped products relative to tensor_gemm.hpp, and of the fused operator around them.
struct MixtureParameters {
    double floor_s{}, efficiency{}, dram_share{}, fill{}, traffic{}, spread{};
};

inline void visit_parameters(MixtureParameters& p, const ParameterVisitor& visit) {
    using P = MixtureParameters;
    static const DeclaredFields<P> fields(
        "moe", FTAX_NAMED(&P::floor_s, &P::efficiency, &P::dram_share, &P::fill, &P::traffic, &P::spread));
    fields.visit(p, visit);
}

namespace mixture {

// Tokens of one text choose similar experts; those of the benchmarks behind `spread` are spread more evenly than
// random. Source: serving.csv and serving_engines.csv, GPT-OSS, Qwen3-30B-A3B, DeepSeek: 0.6 to 1.
inline constexpr double spread_of_texts = 0.8;

// Share of the rate of fp8 with sums scaled outside of tensor cores. Source: docs/kernel-models/mixture-of-experts.md.
inline constexpr double scaled_outside = 0.44;

// Fill of a wave of CUTLASS's products in nvfp4 on Blackwell, relative to others. Source: AIConfigurator 0.12,
// moe_torch_flow_cutlass under TensorRT-LLM 1.3 on a B200.
inline constexpr double fp4_cutlass_fill = 4;
// SM's time for a row in CUTLASS's kernels around two such products: they copy, activate and quantise. Source: ditto.
inline constexpr double fp4_cutlass_row_s = 0.9e-6;

// Efficiency of Marlin's kernel relative to a single product. Source: AIConfigurator 0.12, vLLM 0.24 on an L40S.
inline constexpr double marlin_efficiency = 0.9;

/// Returns the expected number of experts with tokens, at least those of one token and at most those of all tokens.
/// Source: each token skips a given expert with probability 1 - per_token / experts.
inline double touched_experts(double tokens, double per_token, double experts, double spread) {
    if (per_token >= experts) return experts;
    const double touched = experts * (1.0 - std::exp(std::log1p(-per_token / experts) * (spread * tokens)));
    return std::max(per_token, std::min(touched, tokens * per_token));
}

/// Time of a grouped product x · W over all experts with rows, without floor. Seconds.
struct GroupedTime {
    double compute_s{}, memory_s{};
    const GemmTile* tile = nullptr;
    double blocks{};
    double own = 1;  ///< share of the blocks whose rows belong to an expert
};

inline GroupedTime grouped_time(const GroupedGemmShape& s, const DeviceRates& device, const TensorGemmParameters& p,
                                const MixtureParameters& q, const ExpertKernels& own = {}, bool uneven = false) {
    const auto rows = real(s.rows), per_token = real(s.per_token), experts = real(s.experts);
    auto n = real(s.n), k = real(s.k);
    const double touched = touched_experts(rows / per_token, per_token, experts, q.spread);
    GemmShape one{
        .m = s.rows, .n = s.n, .k = s.k, .element_bytes = s.element_bytes, .linear = true, .operands = s.operands};
    one.dot_products = precision_spec(s.operands).is_of_gguf();
    auto rates = tensor_gemm::rates_of(one, device, p);
    const PrecisionSpec& operands = precision_spec(s.operands);
    const double rate = s.in_marlin ? device.chip->flash2.mma_share : 1;  // mma.sync, beside which lanes widen weights
    rates.sm_boost_flops_per_s *= rate * tensor_gemm::widening(operands, device) /
                                  (s.widens_apart ? 1 : tensor_gemm::widening(operands, device, rate));
    const double share = q.efficiency * own.efficiency;  // the fused operator's was fitted under the power limit
    rates.sm_flops_per_s =
        std::min(rates.sm_flops_per_s * (s.prepared ? 1 : share), rates.sm_boost_flops_per_s * share);
    if (s.is_mxfp4) {  // blocks of 32; experts are padded. Source: vLLM, mxfp4.py (round_up)
        const double width = s.in_marlin ? 128 : 256;
        rates.weight_bytes = 0.5 + 1.0 / 32;
        if (!s.in_marlin) rates.x_bytes = 1 + 1.0 / 32;
        n = round_up(n, s.gated ? 2 * width : 256);
        k = round_up(k, s.gated ? 256 : width);
    }
    rates.dram_bytes_per_s *= q.dram_share * own.dram_share;
    const double of_expert = rows / touched;
    const double steps = round_up(k / tensor_gemm::step);
    const double fill_s = p.fill_s * q.fill * own.fill * rates.cycle_scale;
    GroupedTime best;
    for (const GemmCandidate& candidate : device.chip->tensor.candidates) {
        const GemmTile& tile = candidate.tile;
        if (s.padded > 0 && tile.rows != padded_tile_rows) continue;
        const double used_rows = s.padded > 0 || of_expert > tile.rows ? tile.rows : of_expert;
        const double of_tile = of_expert * tile.inverse_rows;
        const double own_blocks = touched * (uneven ? 1 / -std::expm1(-1 / of_tile) : round_up(of_tile));
        const double row_blocks = s.padded > 0 ? s.padded * tile.inverse_rows : own_blocks;
        const double blocks = row_blocks * tiles_over(n, tile.columns, tile.inverse_columns);
        const double arithmetic_s = 2 * tile.area * tensor_gemm::step / rates.sm_flops_per_s;
        const double operands_s = tensor_gemm::step * (used_rows * rates.x_bytes + tile.columns * rates.weight_bytes) /
                                  rates.sm_operand_bytes_per_s;
        const double step_s = std::max(arithmetic_s, operands_s);
        const double fixed_s =
            fill_s + p.epilogue * rates.y_bytes * used_rows * tile.columns / rates.sm_operand_bytes_per_s;
        const double time_s = tensor_gemm::waves(blocks / rates.sms, p.wave_sharpness) * (fixed_s + steps * step_s);
        if (best.tile != nullptr && time_s >= best.compute_s) continue;
        best.compute_s = time_s;
        best.tile = &tile;
        best.blocks = blocks;
        best.own = std::min(1.0, own_blocks / row_blocks);
    }
    best.memory_s = tensor_gemm::memory_time(touched * (n * k * rates.weight_bytes),
                                             std::max(rows, s.padded) * (k * rates.x_bytes + n * rates.y_bytes),
                                             s.weight_reuse_bytes, device, rates, p);
    return best;
}

}  // namespace mixture

inline KernelPlan plan(const GroupedGemmShape& s, const DeviceRates& device, const TensorGemmParameters& p,
                       const MixtureParameters& q) {
    MixtureParameters of_texts = q;
    of_texts.spread = mixture::spread_of_texts;
    if (s.padded > 0) of_texts.efficiency = 1;  // DeepGEMM's kernel for one product and for groups is the same
    if (s.in_marlin) of_texts.efficiency = mixture::marlin_efficiency;
    if (s.scaled_outside) of_texts.efficiency *= mixture::scaled_outside;
    if (s.in_fp4_cutlass) of_texts.fill *= mixture::fp4_cutlass_fill;
    const auto time = mixture::grouped_time(s, device, p, of_texts, {}, s.padded == 0);
    KernelPlan plan;
    plan.algorithm = "grouped gemm";
    plan.tile = {time.tile->name, time.tile->columns, time.tile->rows};
    plan.blocks = time.blocks;
    plan.waves = plan.blocks / device.sms;
    plan.floor_s = (s.sorted ? q.floor_s / 2 : p.floor_s) * tensor_gemm::cycle_scale(device, p);
    plan.compute_s = time.compute_s;
    plan.memory_s = time.memory_s;
    plan.seconds =
        plan.floor_s + tensor_gemm::overlap(time.own * time.compute_s, time.memory_s) + (1 - time.own) * time.compute_s;
    if (s.in_fp4_cutlass) plan.seconds += real(s.rows) / 2 * mixture::fp4_cutlass_row_s / device.sms;
    // Activated and quantised: 2 + 1 and 1 + 0.5 bytes of each result.
    if (s.gated && s.padded > 0) plan.seconds += 4.5 * (s.padded - real(s.rows)) * real(s.n) / device.dram_bytes_per_s;
    plan.power_limited_s = plan.seconds;
    return plan;
}

/// Plans the fused operator: routing, both grouped products, the intermediate traffic and the weighted sum.
inline KernelPlan plan(const MixtureShape& s, const DeviceRates& device, const TensorGemmParameters& p,
                       const MixtureParameters& q) {
    const std::int64_t rows = s.tokens * s.per_token;
    const bool untuned = s.untuned_cutlass && precision_spec(s.operands).quantizes_activations();
    const ExpertKernels own = untuned ? device.chip->untuned_experts : ExpertKernels{};
    GroupedGemmShape product{.experts = s.experts,
                             .per_token = s.per_token,
                             .rows = rows,
                             .n = (s.gated ? 2 : 1) * s.width,
                             .k = s.hidden,
                             .element_bytes = s.element_bytes,
                             .operands = s.operands,
                             .weight_reuse_bytes = 0};
    const auto up = mixture::grouped_time(product, device, p, q, own);
    product.n = s.hidden;
    product.k = s.width;
    const auto down = mixture::grouped_time(product, device, p, q, own);
    const auto rates = tensor_gemm::rates_of(GemmShape{.m = rows, .element_bytes = 2, .linear = true}, device, p);
    const auto pairs = real(rows), hidden = real(s.hidden), width = real(s.width);
    // gated and activated values, permuted rows there and back, the sum
    const double bytes =
        s.element_bytes * (pairs * ((s.gated ? 3 : 2) * width + 2 * hidden) + 2 * real(s.tokens) * hidden);
    const double missed = tensor_gemm::miss_share(bytes / (p.l2_share * device.l2_bytes));
    KernelPlan plan;
    plan.algorithm = "mixture of experts";
    plan.tile = {up.tile->name, up.tile->columns, up.tile->rows};
    plan.blocks = up.blocks + down.blocks;
    plan.waves = plan.blocks / device.sms;
    plan.floor_s = q.floor_s * tensor_gemm::cycle_scale(device, p);
    plan.compute_s = up.compute_s + down.compute_s;
    plan.memory_s = up.memory_s + down.memory_s + rates.seconds(q.traffic * bytes, missed);
    plan.seconds = plan.floor_s + tensor_gemm::overlap(up.compute_s, up.memory_s) +
                   tensor_gemm::overlap(down.compute_s, down.memory_s) + (plan.memory_s - up.memory_s - down.memory_s);
    plan.power_limited_s = plan.seconds;
    return plan;
}

}  // namespace ftax::kernels
