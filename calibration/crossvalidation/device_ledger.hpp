#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/fit/model_fit.hpp"
#include "src/io/profile_file.hpp"
#include "src/io/uncertainty_file.hpp"

/// Scores the kernel models on whole forward passes that the device decides.
namespace ftax::folds {

/// Errors of a group of rows in one fold.
struct DeviceFigures {
    std::string fold;
    std::string precision;  ///< "fp32", "fp16 tensor cores" or "fp16 Pascal"
    fit::ErrorSummary of_group;
};

/// Predicts every row with the built-in device profile.
[[nodiscard]] std::vector<DeviceFigures> validate_devices(std::span<const fit::ModelRow> rows);

/// Refits the profile from `start` (a fit of operators) without each model, then without each device; a device left out
/// is predicted from its datasheet, then with its clocks fitted to the longest resnet50 row of each precision, which is
/// not scored.
[[nodiscard]] std::vector<DeviceFigures> device_folds(std::span<const fit::ModelRow> rows,
                                                      const DeviceProfileFile& start);

/// Estimates how far the device factors of cards spread from rows whose model, card or generation a refit has not seen.
[[nodiscard]] VarianceComponents variance_components(std::span<const fit::ModelRow> rows,
                                                     const DeviceProfileFile& start);

[[nodiscard]] std::string device_ledger_csv(std::span<const DeviceFigures> figures);
[[nodiscard]] std::string device_ledger_markdown(std::span<const DeviceFigures> figures);

}  // namespace ftax::folds
