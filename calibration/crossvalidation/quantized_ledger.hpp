#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/fit/fit_report.hpp"
#include "ftax/measurement.hpp"
#include "src/io/measurement_file.hpp"

/// Errors of quantised products and mixtures of experts on shapes and GPUs that their fits have not seen.
namespace ftax::folds {

/// Fits them on top of the built-in profile, with folds. Throws Error{usage} for an unknown GPU.
[[nodiscard]] std::vector<fit::FitReport> quantized_folds(const MeasurementFile<OperatorMeasurement>& measured);

[[nodiscard]] std::string quantized_ledger_csv(std::span<const fit::FitReport> reports);
[[nodiscard]] std::string quantized_ledger_markdown(std::span<const fit::FitReport> reports);

}  // namespace ftax::folds
