#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibration/fit/fit_report.hpp"

/// Scores on rows that a fit has not seen, as ledger.py reads them.
namespace ftax::folds {

/// Errors of one class of rows in one fold.
struct Figures {
    std::string fold;
    std::string op_class;      ///< class of operators, or precision of whole models
    std::string region;        ///< one dimension and the range it lies in, as "512 < k <= 4096"; empty: all shapes
    fit::ErrorSummary of_gpu;  ///< of a GPU, or of another group of rows
};

/// fold,class,region,gpu,rows,mape,median,p90,bias; errors as fractions.
[[nodiscard]] std::string figures_csv(std::span<const Figures> figures);

}  // namespace ftax::folds
