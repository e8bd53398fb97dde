#pragma once

#include <algorithm>
#include <cmath>

#include "ftax/equations.hpp"
#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/flash_attention.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/kernels/power.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/profiles/parameters.hpp"

namespace ftax::kernels {

struct AttentionParameters {
    double memory_efficient_efficiency{}, math_efficiency{}, score_cycles{};
    FlashParameters flash;
};

/// Source of the initial values: Dao, "FlashAttention-2", arXiv 2307.08691, figures 4 to 6.
inline void visit_parameters(AttentionParameters& p, const ParameterVisitor& visit) {
    using P = AttentionParameters;
    static const DeclaredFields<P> fields(
        "attention", FTAX_NAMED(&P::memory_efficient_efficiency, &P::math_efficiency, &P::score_cycles));
    fields.visit(p, visit);
    visit_parameters(p.flash, visit);
}

namespace attention {

/// Query rows per thread block of the memory-efficient kernel, and keys per step of its loop.
/// Source: aten/src/ATen/native/transformers/cuda/mem_eff_attention, its default tiles.
inline constexpr double query_tile = 64, key_tile = 64;

/// Resident blocks per SM: shared memory holds two tiles of queries, keys and values.
inline constexpr double blocks_per_sm = 2;

/// In f32 the memory-efficient kernel uses TF32 tensor cores if available: three products of the upper and lower halves
/// of each number, with mma.sync, at this share of the rate. Source: gemm_kernel_utils.h there (OpMultiplyAddFastF32).
inline constexpr double tf32_products = 3, tf32_share = 0.3, xformers_tf32_share = 0.5;

/// FLOP that an SM of Volta or Turing computes per cycle in the products of half-precision attention, beside the
/// exponentials; later chips copy asynchronously. Source: xformers pull request 434, a V100 with 4,096 tokens: 18.3
/// TFLOP/s with heads of 40, 35.6 with 128; a T4: Dao-AILab/flash-attention issue 1533.
inline constexpr double volta_flops_per_cycle = 370;

/// Returns the elements of queries, keys, values and result; a key head shared by several query heads counts once.
inline double elements(const AttentionShape& s) {
    return real(s.batch) * (real(s.heads) * 2 * real(s.q_length) * real(s.head_dim) +
                            flash::kv_heads(s) * cached_elements(s) * real(s.kv_length));
}

}  // namespace attention

/// Plans one attention: softmax(Q·Kᵀ)·V, from the start of the first to the end of the last kernel.
/// The math path writes the scores, reads and writes them in the softmax and reads them again; fused paths keep them on
/// chip. Chips without flash kernels run the memory-efficient one (PyTorch, sdp_utils.cpp).
/// Source: FLOPs and traffic of arXiv 2205.14135, section 3; waves of query tiles over the SMs.
inline KernelPlan plan(const AttentionShape& shape, const DeviceRates& device, const AttentionParameters& p,
                       const TensorGemmParameters& gemm) {
    // FlashAttention 2 needs mma.sync of Ampere and 16 bits.
    if (shape.path == AttentionPath::flash && is_tensor(device.path) && !flash::kernels_of(shape, device).dense.empty())
        return plan_flash(shape, device, p.flash, gemm);
    const double heads = real(shape.batch) * real(shape.heads);
    const auto queries = real(shape.q_length);
    const auto keys = real(shape.kv_length);
    const auto head_dim = real(shape.head_dim);
    const double scores = heads * queries * keys;
    const bool unfused = shape.path == AttentionPath::math || shape.path == AttentionPath::products;
    constexpr double tile = attention::query_tile;
    KernelPlan plan;
    plan.algorithm = unfused ? "attention, math" : "attention, memory-efficient";
    plan.blocks = heads * std::ceil(queries / tile);
    plan.blocks_per_sm = attention::blocks_per_sm;
    const double slots = device.sms * attention::blocks_per_sm;
    plan.waves = plan.blocks / slots;
    plan.floor_s = device.floor_s * (unfused ? 3.0 : 1.0);
    plan.seconds = plan.floor_s;
    if (scores <= 0) return plan;

    const double tensors_bytes = attention::elements(shape) * shape.element_bytes;
    if (unfused) {
        const double share = std::min(p.math_efficiency, powered_share(device, gemm.energy_scale));
        plan.compute_s = 4 * scores * head_dim / (device.flops_per_s * share);
        // PyTorch scales queries and keys in separate passes.
        const bool scales_apart = shape.path == AttentionPath::math;
        // fp16 for the products, f32 for the softmax, conversions between: 24 bytes per score.
        const double score_bytes = scales_apart ? shape.element_bytes : 6;
        plan.memory_s =
            ((scales_apart ? 3 : 1) * tensors_bytes + 4 * scores * score_bytes) / device.bandwidth_bytes_per_s;
        plan.seconds += plan.compute_s + plan.memory_s;
    } else {
        const double waves =
            plan.blocks < slots ? std::ceil(plan.blocks / device.sms) / attention::blocks_per_sm : plan.waves;
        const auto head = real((shape.head_dim + 31) / 32 * 32);  // kernels are for multiples of 32
        const double seen = std::min(shape.causal ? keys - (queries - tile) / 2 : keys, most_keys(shape, tile));
        const double keys_per_block = attention::key_tile * std::ceil(seen / attention::key_tile);
        const bool tf32 = device.path == MathPath::tf32;
        const bool xformers = shape.library == FlashLibrary::xformers;
        const bool copies_synchronously = is_tensor(device.path) && device.chip->flash2.dense.empty();
        const double volta_share =
            attention::volta_flops_per_cycle * device.sms * device.boost_clock_hz / device.flops_per_s;
        const double sustained = copies_synchronously ? std::min(volta_share, p.memory_efficient_efficiency)
                                 : !tf32              ? p.memory_efficient_efficiency
                                 : xformers           ? attention::xformers_tf32_share * device.chip->conv_share
                                                      : attention::tf32_share;
        const double powered = powered_share(device, gemm.energy_scale, gemm.efficiency / sustained);
        const double share = std::min(sustained, powered / std::min(1.0, plan.blocks / device.sms)) /
                             (tf32 ? attention::tf32_products : 1);
        const double score_s =
            slots * (4 * head / (device.flops_per_s * share) + p.score_cycles / (device.sms * device.boost_clock_hz));
        plan.compute_s = waves * tile * keys_per_block * score_s;
        plan.memory_s = tensors_bytes / device.bandwidth_bytes_per_s;
        plan.seconds += equations::smooth_maximum(plan.compute_s, plan.memory_s);
    }
    const double full_rate_s = flops(shape) / device.flops_per_s;
    plan.power_limited_s = power_limited_seconds(plan.seconds, full_rate_s * power_ratio(device, 1.0), device);
    return plan;
}

}  // namespace ftax::kernels
