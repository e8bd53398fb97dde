#pragma once

#include "predictors/kernels/residency.hpp"
#include "src/core/parameters.hpp"

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
    double product_energy_scale{};  ///< tensor_gemm.energy_scale
    ResidencyParameters residency;  ///< shared with memory-bound kernels; unset in fits of CUDA-core kernels
};

inline void visit_parameters(ConvParameters& p, const ParameterVisitor& visit) {
    using P = ConvParameters;
    static const DeclaredFields<P> fields(
        "conv", "wave_sharpness", &P::wave_sharpness, "fill_steps", &P::fill_steps, "latency_256", &P::latency_256,
        "latency_128", &P::latency_128, "latency_64", &P::latency_64, "core_efficiency", &P::core_efficiency,
        "energy_scale", &P::energy_scale, "winograd4_efficiency", &P::winograd4_efficiency, "winograd2_efficiency",
        &P::winograd2_efficiency, "operand_bandwidth", &P::operand_bandwidth, "filter4_bandwidth",
        &P::filter4_bandwidth, "stream_bandwidth", &P::stream_bandwidth, "layout_bandwidth", &P::layout_bandwidth,
        "tensor_efficiency", &P::tensor_efficiency, "tensor_narrow_efficiency", &P::tensor_narrow_efficiency,
        "depthwise_rate", &P::depthwise_rate, "depthwise_steps", &P::depthwise_steps, "depthwise_half_rate",
        &P::depthwise_half_rate, "depthwise_cudnn_steps", &P::depthwise_cudnn_steps, "engine_rate", &P::engine_rate,
        "engine_bandwidth", &P::engine_bandwidth);
    fields.visit(p, visit);
}

}  // namespace ftax::kernels
