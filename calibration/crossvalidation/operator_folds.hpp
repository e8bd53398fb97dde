#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/crossvalidation/figures.hpp"
#include "calibration/fit/operator_fit.hpp"

namespace ftax::folds {

/// Predicts every row as `ftax validate` does, with the built-in device and host profiles: all rows, those under usual
/// conditions, these by region of shapes, and each kind of the others.
[[nodiscard]] std::vector<Figures> validate(const fit::OperatorRows& rows);

/// The folds of operator fits.
[[nodiscard]] std::vector<Figures> folds_of(std::span<const fit::FitReport> reports);

}  // namespace ftax::folds
