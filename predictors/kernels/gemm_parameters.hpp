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
    using P = GemmParameters;
    static const DeclaredFields<P> fields(
        "gemm", "fill", &P::fill, "latency_cycles", &P::latency_cycles, "issue_latency", &P::issue_latency,
        "wide_efficiency", &P::wide_efficiency, "narrow_efficiency", &P::narrow_efficiency, "sliced_efficiency",
        &P::sliced_efficiency, "write_bandwidth", &P::write_bandwidth, "strided_bandwidth", &P::strided_bandwidth,
        "layer_strided_bandwidth", &P::layer_strided_bandwidth, "strided_reduction", &P::strided_reduction, "reread",
        &P::reread, "skew_waves", &P::skew_waves, "skew", &P::skew, "energy_scale", &P::energy_scale, "operand_energy",
        &P::operand_energy);
    fields.visit(p, visit);
}

}  // namespace ftax::kernels
