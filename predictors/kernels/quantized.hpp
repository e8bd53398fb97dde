#pragma once

#include <array>

#include "ftax/precision.hpp"
#include "predictors/kernels/tensor_gemm.hpp"
#include "predictors/profiles/parameters.hpp"

/// Matrix products with quantised operands, and the kernel that quantises activations before them. The product is
/// modelled as in tensor_gemm.hpp with narrower operands, a faster unit and a few ratios per kernel family.
/// Source: docs/kernel-models/quantised-products.md.
namespace ftax::kernels {

/// Ratios of one kernel family relative to f16 (TensorGemmParameters).
struct QuantizedRatios {
    double floor_s{}, row_cycles{}, rate{};           ///< kernel that quantises
    double epilogue{}, efficiency{}, energy_scale{};  ///< matrix product
};

struct QuantizedParameters {
    std::array<QuantizedRatios, quantized_kernels_count> of;

    [[nodiscard]] const QuantizedRatios& at(QuantizedKernels kernels) const {
        return of[static_cast<std::size_t>(kernels)];
    }
};

inline void visit_parameters(QuantizedParameters& p, const ParameterVisitor& visit) {
    using R = QuantizedRatios;
    static const std::array<DeclaredFields<R>, quantized_kernels_count> families{
        DeclaredFields<R>(
            "fp8", FTAX_NAMED(&R::floor_s, &R::row_cycles, &R::rate, &R::epilogue, &R::efficiency, &R::energy_scale)),
        DeclaredFields<R>("fp8_block", FTAX_NAMED(&R::floor_s, &R::rate, &R::epilogue, &R::efficiency,
                                                  &R::energy_scale)),  // no cycles per row
        DeclaredFields<R>("nvfp4", FTAX_NAMED(&R::floor_s, &R::row_cycles, &R::rate, &R::epilogue, &R::efficiency,
                                              &R::energy_scale))};
    for (std::size_t i = 0; i < families.size(); ++i) families[i].visit(p.of[i], visit);
}

namespace quantized {

/// Time of a value in TensorRT-LLM's kernel for sorted rows relative to others. Source: fp8_block experts on an H100,
/// AIConfigurator 0.12 (docs/kernel-models/mixture-of-experts.md).
inline constexpr double by_expert = 8;

/// Returns the parameters for a precision; weight-only quantisation does not change the arithmetic.
inline TensorGemmParameters parameters(const PrecisionSpec& precision, TensorGemmParameters p,
                                       const QuantizedParameters& q) {
    if (precision.kernels == QuantizedKernels::none) return p;
    const QuantizedRatios& ratios = q.at(precision.kernels);
    p.epilogue *= ratios.epilogue;
    p.efficiency *= ratios.efficiency;
    p.energy_scale *= ratios.energy_scale;
    return p;
}

}  // namespace quantized

/// Plans the kernels that quantise rows × columns: either one block per row reads the row twice (maximum, then values)
/// and writes it once, or one warp per scale block does so in a single pass. Source: vLLM, csrc/quantization/w8a8/fp8
/// (dynamic_per_token_scaled_fp8_quant); TensorRT-LLM, fp8_blockscale_gemm_kernel.cuh (scale_1x128_kernel) and
/// quantization/utils/fp8_utils.py; ratios as above.
inline KernelPlan plan(const QuantizeShape& s, const DeviceRates& device, const TensorGemmParameters& p,
                       const QuantizedParameters& q) {
    const PrecisionSpec& precision = precision_spec(s.operands);
    const QuantizedRatios& ratios = q.at(precision.kernels);
    const auto family = static_cast<std::size_t>(precision.kernels);
    const Quantizer& library = device.chip->quantizers[family];
    const GemmShape product{.m = s.rows, .n = 1, .k = s.columns, .element_bytes = 2, .linear = true};
    const auto rates = tensor_gemm::rates_of(product, device, p);
    const auto rows = real(s.rows), columns = real(s.columns);
    const double stored = bits_of(precision.storage) / 8.0, written = precision.activation_bytes();
    const double missed = tensor_gemm::miss_share(rows * columns * (stored + written) / (p.l2_share * device.l2_bytes));
    KernelPlan plan;
    plan.algorithm = "quantize";
    plan.blocks = rows;
    plan.waves = rows / device.sms;
    plan.floor_s = library.launches * ratios.floor_s + (library.launches - 1) * graph_gap_s;
    const double of_warp = library.rows > 0 ? rows / library.rows * library.columns  // with a limited grid
                                            : rows * columns / (device.sms * device.max_threads_per_sm / 32.0);
    const double cycles =
        precision.kernels == QuantizedKernels::fp8_block  // a warp quantises a scale block
            ? of_warp * (s.by_expert ? quantized::by_expert : 1) / ratios.rate
            : double((columns / ratios.rate + ratios.row_cycles) * (plan.waves < 1 ? 1.0 : plan.waves));
    plan.compute_s = cycles / (p.clock * device.boost_clock_hz);
    const double passes = precision.activation_block > 0 ? 1 : 2;  // the maximum of a row requires a pass of its own
    plan.memory_s = rates.seconds(rows * columns * (passes * stored + written), missed);
    plan.seconds = plan.floor_s + (plan.compute_s < plan.memory_s ? plan.memory_s : plan.compute_s);
    plan.power_limited_s = plan.seconds;
    return plan;
}

}  // namespace ftax::kernels
