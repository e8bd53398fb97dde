#pragma once

#include <span>
#include <vector>

#include "calibration/crossvalidation/figures.hpp"
#include "calibration/fit/layer_kernel_fit.hpp"
#include "calibration/fit/tensor_gemm_fit.hpp"
#include "src/io/csv.hpp"
#include "src/io/measurement_file.hpp"

/// Scores the kernels of language models' layers, timed alone in CUDA graphs.
namespace ftax::folds {

/// Rows of tensor_ops.csv and layer_ops.csv for each of the fits.
struct LayerRows {
    std::vector<fit::TensorGemmRow> gemm;
    std::vector<fit::LayerKernelRow> layers;
};

/// Sorts the rows of the files. Throws Error{usage} for an unknown GPU.
[[nodiscard]] LayerRows layer_rows(std::vector<CsvTable> tables);

/// Refits without a fifth of the shapes, then without each GPU: its matrix products are left out with it, from which
/// the others take bandwidths, rates and energy. What rows do not tell comes from `profile`.
[[nodiscard]] std::vector<Figures> layer_folds(const LayerRows& rows, const DeviceProfileFile& profile);

/// Fits quantised products and mixtures of experts on top of the built-in profile, with folds. Throws Error{usage} for
/// an unknown GPU.
[[nodiscard]] std::vector<Figures> quantized_folds(const MeasurementFile<OperatorMeasurement>& measured);

}  // namespace ftax::folds
