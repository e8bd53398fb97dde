#pragma once

#include "predictors/kernels/residency.hpp"
#include "src/core/parameters.hpp"

namespace ftax::kernels {

/// Ratios of the convolution kernels. Efficiencies are shares of the sustained rate in DeviceRates.
struct ConvParameters {
    double wave_sharpness{};
    double fill_steps{};
    double latency_256{};
    double latency_128{};
    double latency_64{};
    double core_efficiency{};
    double energy_scale{};
    double winograd4_efficiency{};
    double winograd2_efficiency{};
    double operand_bandwidth{};
    double filter4_bandwidth{};
    double stream_bandwidth{};
    double layout_bandwidth{};
    double tensor_efficiency{};
    double tensor_narrow_efficiency{};
    double depthwise_rate{};
    double depthwise_steps{};
    double depthwise_half_rate{};
    double depthwise_cudnn_steps{};
    double engine_rate{};
    double engine_bandwidth{};
    double product_energy_scale{};  ///< tensor_gemm.energy_scale
    ResidencyParameters residency;  ///< shared with memory-bound kernels; unset in fits of CUDA-core kernels
};

inline void visit_parameters(ConvParameters& p, const ParameterVisitor& visit) {
    using enum ParameterScope;
    visit("conv.wave_sharpness", p.wave_sharpness,
          {0.88, 0.05, 1, 0.3, shared, "share of blocks that start in whole waves; neusight_ops.csv conv"});
    visit("conv.fill_steps", p.fill_steps,
          {1.75, 0.1, 10, 0.5, shared,
           "start and end of a block in steps of its main loop (8 values of k on CUDA cores, 32 on tensor "
           "cores); neusight_ops.csv conv"});
    visit("conv.latency_256", p.latency_256,
          {0.63, 0.01, 6, 0.5, shared, "see wave_time, blocks of 256 threads; neusight_ops.csv conv"});
    visit("conv.latency_128", p.latency_128,
          {1.05, 0.01, 6, 0.5, shared, "see wave_time, blocks of 128 threads; neusight_ops.csv conv"});
    visit("conv.latency_64", p.latency_64,
          {1.9, 0.01, 6, 0.5, shared, "see wave_time, blocks of 64 threads; neusight_ops.csv conv"});
    visit("conv.core_efficiency", p.core_efficiency,
          {1, 0.5, 1.3, 0.1, architecture,
           "share of the CUDA cores' sustained rate in the main loop; neusight_ops.csv conv"});
    visit("conv.energy_scale", p.energy_scale,
          {0.9, 0.3, 3, 0.15, shared, "energy per operation relative to energy_per_flop_j; prior: gemm.energy_scale"});
    visit("conv.winograd4_efficiency", p.winograd4_efficiency,
          {1.0, 0.3, 2, 0.3, shared, "rate of the 36 matrix products against implicit GEMM; neusight_ops.csv conv"});
    visit("conv.winograd2_efficiency", p.winograd2_efficiency,
          {0.85, 0.3, 2, 0.3, shared,
           "rate of the fused kernel's products against implicit GEMM; neusight_ops.csv conv"});
    visit("conv.operand_bandwidth", p.operand_bandwidth,
          {0.6, 0.1, 2, 0.5, shared,
           "share of the memory bandwidth that CUDA-core kernels and Winograd transforms reach; "
           "neusight_ops.csv conv"});
    visit("conv.filter4_bandwidth", p.filter4_bandwidth,
          {0.28, 0.05, 2, 0.5, shared,
           "share of the memory bandwidth that the 4x4 filter transform reaches: it writes 36 planes from "
           "9 strided reads; neusight_ops.csv conv"});
    visit("conv.stream_bandwidth", p.stream_bandwidth,
          {0.9, 0.2, 1.05, 0.3, shared,
           "share of the memory bandwidth of tensor-core and depthwise kernels; framework_tax.csv eager CNNs, "
           "timm_infer.csv"});
    visit("conv.layout_bandwidth", p.layout_bandwidth,
          {0.9, 0.2, 1.05, 0.5, shared, "the same for copies between NCHW and NHWC; framework_tax.csv (cuDNN 8.3)"});
    visit("conv.tensor_efficiency", p.tensor_efficiency,
          {0.95, 0.2, 2, 0.3, architecture,
           "share of the tensor cores' sustained rate in the main loop, tile 128x128; framework_tax.csv"});
    visit("conv.tensor_narrow_efficiency", p.tensor_narrow_efficiency,
          {0.8, 0.2, 1.2, 0.3, shared, "rate of tile 128x64 against 128x128; framework_tax.csv fp16, tf32"});
    visit("conv.depthwise_rate", p.depthwise_rate,
          {0.033, 0.004, 1, 0.5, architecture,
           "share of the f32 rate of PyTorch's depthwise kernel (f32) with 3x3 filters: two loads per tap; "
           "framework_tax.csv mnasnet, mobilenet_v2"});
    visit("conv.depthwise_steps", p.depthwise_steps,
          {7, 0.5, 40, 0.3, shared,
           "taps that take as long as finding an output's place in that kernel: a 5x5 filter takes 1.8 times "
           "what a 3x3 one does in nas_fbnet.csv (10 steps), 2.2 times in framework_tax.csv mnasnet (5)"});
    visit("conv.depthwise_half_rate", p.depthwise_half_rate,
          {0.16, 0.01, 2, 0.5, shared,
           "the same for cuDNN's f16 depthwise kernels, NCHW; framework_tax.csv, timm_infer.csv"});
    visit("conv.depthwise_cudnn_steps", p.depthwise_cudnn_steps,
          {20, 0.5, 200, 0.7, shared,
           "what an output of cuDNN's depthwise kernels costs besides its taps, in taps; timm_infer.csv"});
    visit("conv.engine_rate", p.engine_rate,
          {1.0, 0.5, 2, 0.2, shared,
           "rate of TensorRT's kernels against cuDNN's, CUDA cores; framework_tax.csv torch-tensorrt fp32"});
    visit("conv.engine_bandwidth", p.engine_bandwidth,
          {0.9, 0.3, 2, 0.2, shared,
           "share of the memory bandwidth that TensorRT's kernels reach; framework_tax.csv torch-tensorrt"});
}

}  // namespace ftax::kernels
