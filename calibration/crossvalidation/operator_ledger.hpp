#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/fit/operator_fit.hpp"

namespace ftax::folds {

/// Errors of one class of operators on one GPU, predicted in one way.
struct OperatorFigures {
    std::string fold;  ///< "validate", or the name of a fold of a FitReport
    std::string op_class;
    std::string region;  ///< one dimension and the range it lies in, as "512 < k <= 4096"; empty: all shapes
    fit::ErrorSummary of_gpu;
};

/// Predicts every row as `ftax validate` does, with the built-in device and host profiles: all rows, those under usual
/// conditions, these by region of shapes, and each kind of the others.
[[nodiscard]] std::vector<OperatorFigures> validate(const fit::OperatorRows& rows);

/// The folds of operator fits.
[[nodiscard]] std::vector<OperatorFigures> folds_of(std::span<const fit::FitReport> reports);

[[nodiscard]] std::string operator_ledger_csv(std::span<const OperatorFigures> figures);
[[nodiscard]] std::string operator_ledger_markdown(std::span<const OperatorFigures> figures);

}  // namespace ftax::folds
