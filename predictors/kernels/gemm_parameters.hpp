#pragma once

#include "src/core/parameters.hpp"

namespace ftax::kernels {

/// Ratios of the matrix-product kernels; efficiencies are shares of the sustained rates in DeviceRates.
struct GemmParameters {
    double fill{}, latency_cycles{}, issue_latency{}, wide_efficiency{}, narrow_efficiency{}, sliced_efficiency{};
    double write_bandwidth{}, strided_bandwidth{}, layer_strided_bandwidth{}, strided_reduction{};
    double reread{}, skew_waves{}, skew{};
    double energy_scale{}, operand_energy{};
};

/// Source: initial values are those of a robust fit to linear and bmm rows of neusight_ops.csv over five GPUs unless a
/// specification names another source.
inline void visit_parameters(GemmParameters& p, const ParameterVisitor& visit) {
    using enum ParameterScope;
    visit("gemm.fill", p.fill, {8, 0.5, 80, 0.5, architecture, "start and end of a block, in values of the reduction"});
    visit("gemm.latency_cycles", p.latency_cycles,
          {500, 40, 2500, 0.4, shared, "cycles of one 8-deep main-loop step of a lone block"});
    visit("gemm.issue_latency", p.issue_latency,
          {0.6, 0.02, 3, 0.4, shared, "latency of a block with one warp per scheduler, in units of its arithmetic"});
    visit("gemm.wide_efficiency", p.wide_efficiency,
          {0.92, 0.5, 1.3, 0.1, architecture, "main loop, 64 outputs per thread"});
    visit("gemm.narrow_efficiency", p.narrow_efficiency,
          {0.85, 0.4, 1.3, 0.12, architecture, "main loop, 16 outputs per thread"});
    visit("gemm.sliced_efficiency", p.sliced_efficiency,
          {0.78, 0.3, 1.3, 0.1, shared, "main loop, kernels whose threads share the reduction"});
    visit("gemm.write_bandwidth", p.write_bandwidth,
          {0.85, 0.3, 1.8, 0.15, architecture, "result, share of the sustained bandwidth"});
    visit("gemm.strided_bandwidth", p.strided_bandwidth,
          {0.5, 0.05, 1.8, 0.6, shared, "operand whose rows run along the reduction, read 32 bytes per row at a time"});
    visit("gemm.layer_strided_bandwidth", p.layer_strided_bandwidth,
          {0.5, 0.05, 1.8, 0.6, architecture,
           "gemm.strided_bandwidth for layers, whose operands are both read this way"});
    visit("gemm.strided_reduction", p.strided_reduction,
          {120, 1, 2000, 0.5, shared, "length of such rows at which half of that loss applies"});
    visit("gemm.reread", p.reread,
          {6, 0.1, 50, 0.7, shared, "half of the re-reads miss when this times working set / L2 is 1"});
    visit("gemm.skew_waves", p.skew_waves,
          {19, 0.5, 500, 0.7, shared, "waves after which the skew between CTAs is half of what it becomes, on 40 SMs"});
    visit("gemm.skew", p.skew,
          {17, 0.5, 500, 1.0, shared,
           "rows that each resident CTA of four warps reads between two that share one, at full skew"});
    visit("gemm.energy_scale", p.energy_scale,
          {1, 0.3, 3, 0.15, shared, "energy per operation relative to energy_per_flop_j"});
    visit("gemm.operand_energy", p.operand_energy,
          {0.2, 0.01, 1, 0.5, shared,
           "share of a 128x128 block's energy that brings its operands, more for smaller blocks; a T4's "
           "64x64 kernel is 20 % slower than its 128x64 kernel, beyond 3 ms only (neusight_ops.csv)"});
}

}  // namespace ftax::kernels
