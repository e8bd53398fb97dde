#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "calibration/fit/fit_options.hpp"
#include "calibration/fit/fit_report.hpp"
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

struct TensorGemmFitOptions {
    FitOptions fit{.starts = 1, .iterations = 30, .row_log_stddev = 0.1, .seed = 1};
    std::size_t rows_per_device = 450;  ///< spread evenly; errors are taken over all rows
    int rounds = 3;     ///< fits, in between kernels are chosen again and priors centred on what was found
    bool folds = true;  ///< a fifth of the shapes left out; one device; all devices of a generation
};

/// Fits the ratios of each generation. Folds are named by what they leave out; rows in the fit are not reported.
[[nodiscard]] FitReport fit_tensor_gemm(std::span<const TensorGemmRow> rows, const TensorGemmFitOptions& options = {});

}  // namespace ftax::fit
