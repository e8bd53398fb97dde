#pragma once

#include <string>
#include <vector>

#include "calibration/crossvalidation/folds.hpp"

namespace ftax::folds {

struct LedgerSection {
    std::string title;
    std::vector<Scored> rows;
};

/// Error figures per framework, precision and GPU: never the rows themselves.
[[nodiscard]] std::string ledger_csv(const std::vector<LedgerSection>& sections);
/// With the lines that the first section does not score, and why.
[[nodiscard]] std::string ledger_markdown(const std::vector<LedgerSection>& sections, const Folds& folds);
/// Every scored row with its prediction, to study what a model gets wrong.
[[nodiscard]] std::string predictions_csv(const std::vector<LedgerSection>& sections);

}  // namespace ftax::folds
