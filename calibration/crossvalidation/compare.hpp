#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ftax::folds {

/// Compares a ledger with its committed form: the text between numbers must be equal, whole numbers within 5, others
/// within 15 % or two percentage points (intervals depend on the profiles that the same run writes). Returns the lines
/// that differ, at most ten of them.
[[nodiscard]] std::vector<std::string> differences(std::string_view committed, std::string_view now);

}  // namespace ftax::folds
