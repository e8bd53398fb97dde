#pragma once

#include <algorithm>
#include <cmath>

#include "predictors/kernels/device_rates.hpp"
#include "predictors/kernels/kernel_plan.hpp"
#include "predictors/kernels/memory_bound.hpp"
#include "predictors/kernels/power.hpp"
#include "predictors/kernels/residency.hpp"
#include "predictors/kernels/shapes.hpp"
#include "predictors/kernels/tensor_gemm.hpp"
#include "predictors/profiles/parameters.hpp"

/// Row-wise kernels of language models: one block per token row. Kernels of 2023 load single elements and are bound by
/// the loads that an SM keeps in flight; current ones load vectors.
/// Source: docs/kernel-models/row-wise.md.
namespace ftax::kernels {

struct TokenParameters {
    double floor_s{}, bytes_per_cycle{}, vector_ratio{};
};

/// Initial values: a fit to all three cards.
inline void visit_parameters(TokenParameters& p, const ParameterVisitor& visit) {
    using P = TokenParameters;
    static const DeclaredFields<P> fields("token", FTAX_NAMED(&P::floor_s, &P::bytes_per_cycle, &P::vector_ratio));
    fields.visit(p, visit);
}

inline KernelPlan plan_token(const MemoryShape& s, const DeviceRates& device, const TokenParameters& p,
                             const TensorGemmParameters& gemm) {
    const bool norm = s.token == TokenKernel::norm;
    const bool pointwise =
        s.token == TokenKernel::add || s.token == TokenKernel::gelu || s.token == TokenKernel::embedding;
    const bool rereads = norm && !s.vectorized;  // statistics, then normalisation
    const auto rows = real(std::max<std::int64_t>(s.rows, 1));
    const double bytes = real(s.read_bytes) + real(s.write_bytes);
    KernelPlan plan = memory_bound::blocks(s, device);
    plan.algorithm = norm ? "token, norm" : pointwise ? "token, pointwise" : "token, rows";
    plan.floor_s = p.floor_s;
    plan.seconds = plan.floor_s;
    if (bytes <= 0) return plan;
    const double clock_hz = gemm.clock * device.boost_clock_hz;
    const double sm_bytes_per_s = (s.vectorized ? p.bytes_per_cycle * p.vector_ratio : p.bytes_per_cycle) * clock_hz;
    // One SM processes a row; elementwise kernels use all SMs.
    const double rows_per_sm = pointwise ? rows / device.sms : std::max(1.0, rows / device.sms);
    plan.compute_s = bytes / rows * rows_per_sm / sm_bytes_per_s;
    // Under random replacement a line survives as many fills as the L2 has lines with probability 1/e. Source: Mei and
    // Chu, "Dissecting GPU Memory Hierarchy through Microbenchmarking", 2017 (it is not the least recently used line).
    const double missed = 1 - std::exp(-bytes / device.l2_bytes);
    const double l2_per_clock = device.l2_bytes_per_clock.value_or(tensor_gemm::l2_bytes_per_clock_and_sm * device.sms);
    const double l2_bytes_per_s = tensor_gemm::l2_stream_share * l2_per_clock * clock_hz;
    const double dram_bytes_per_s =
        device.dram_bytes_per_s * (device.has_inline_ecc ? 1 - tensor_gemm::inline_ecc : 1.0);
    const double traffic = bytes + (rereads ? real(s.read_bytes) : 0.0);
    plan.memory_s = traffic * (missed / dram_bytes_per_s + (1.0 - missed) / l2_bytes_per_s);
    plan.seconds += std::sqrt(plan.compute_s * plan.compute_s + plan.memory_s * plan.memory_s);
    plan.power_limited_s = power_limited_seconds(plan.seconds, 0.0, device);
    return plan;
}

}  // namespace ftax::kernels
