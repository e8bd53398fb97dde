#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/crossvalidation/figures.hpp"
#include "calibration/fit/model_fit.hpp"
#include "src/io/profile_file.hpp"
#include "src/io/uncertainty_file.hpp"

/// Scores the kernel models on whole forward passes that the device decides.
namespace ftax::folds {

/// Predicts every row with the built-in device profile.
[[nodiscard]] std::vector<Figures> validate_devices(std::span<const fit::ModelRow> rows);

/// Refits the profile from `start` (a fit of operators) without each model, then without each device; a device left out
/// is predicted from its datasheet, then with its clocks fitted to the longest resnet50 row of each precision, which is
/// not scored.
[[nodiscard]] std::vector<Figures> device_folds(std::span<const fit::ModelRow> rows, const DeviceProfileFile& start);

/// Estimates how far the device factors of cards spread from rows whose model, card or generation a refit has not seen.
[[nodiscard]] VarianceComponents variance_components(std::span<const fit::ModelRow> rows,
                                                     const DeviceProfileFile& start);

}  // namespace ftax::folds
