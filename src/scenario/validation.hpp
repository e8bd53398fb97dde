#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "graphs/files/csv.hpp"
#include "src/report/validation_report.hpp"
#include "src/scenario/scenario.hpp"
#include "src/scenario/usable_rows.hpp"

/// Compares predictions with the rows of a measurement file; shared by `ftax validate` and Python's ftax.validate.
namespace ftax::scenario {

struct ValidationArguments {
    std::string rows;              ///< file of measured models or operators
    std::string by;                ///< columns to group by, separated by commas; empty for the default
    std::string host_profile{};    ///< for operator rows, see call_host_profile
    bool suggest_anchors = false;  ///< of rows of models: those that would narrow the intervals most
    RunArguments run{};            ///< what rows do not say: anchors, models and profiles; hosts of rows without a CPU
};

struct Validation {
    CsvTable table;
    std::vector<report::ValidatedRow> rows;  ///< one per row of the table
    report::ValidationReport report;
};

/// Called after each row with the number of finished rows and the total.
using Watch = std::function<void(std::size_t, std::size_t)>;

/// Predicts each row of a file and summarises the errors. Rows that cannot be predicted say why.
/// Throws Error{profile} for a file that is no measurement file, Error{usage} for columns that do not exist.
[[nodiscard]] Validation validate(const ValidationArguments& arguments, const Warn& warn, const Watch& watch = {});

}  // namespace ftax::scenario
