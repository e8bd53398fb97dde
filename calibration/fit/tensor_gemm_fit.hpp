#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "calibration/fit/fit_report.hpp"
#include "calibration/fit/generation_fit.hpp"
#include "ftax/device.hpp"
#include "ftax/measurement.hpp"
#include "predictors/kernels/shapes.hpp"

namespace ftax::fit {

/// One measured matrix product on tensor cores: a node of a CUDA graph, start to start.
struct TensorGemmRow {
    const DeviceSpec* device = nullptr;
    kernels::GemmShape shape{};
    MathPath path = MathPath::bf16_tensor;
    double latency_s = 0;
};

/// Builds a row from an operator measurement of mode device_hot; nullopt for another operator, mode or precision.
[[nodiscard]] std::optional<TensorGemmRow> tensor_gemm_row(const OperatorMeasurement& measured,
                                                           const DeviceSpec& device);

/// Fits the ratios of each generation. Folds are named by what they leave out; rows in the fit are not reported.
[[nodiscard]] FitReport fit_tensor_gemm(std::span<const TensorGemmRow> rows, const GenerationFitOptions& options = {});

}  // namespace ftax::fit
