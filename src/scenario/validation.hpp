#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "graphs/files/csv.hpp"
#include "src/report/validation_report.hpp"
#include "src/scenario/usable_rows.hpp"

/// Compares predictions with the rows of a measurement file; shared by `ftax validate` and Python's ftax.validate.
namespace ftax::scenario {

struct ValidationArguments {
    std::string rows;              ///< file of measured models or operators
    std::string anchor;            ///< file of rows that calibrate the hosts; empty for none
    std::string models;            ///< folder with models as files; empty for the zoo
    std::string by;                ///< columns to group by, separated by commas; empty for the default
    std::string device_profile{};  ///< file; empty for the built-in one
    std::string host_profile{};    ///< for operator rows, see call_host_profile
    /// For rows of models: file with the host costs of a framework; empty for the built-in ones.
    std::string framework_profile{};
    std::string host_file{};       ///< of the host of rows of models without a CPU
    bool suggest_anchors = false;  ///< of rows of models: those that would narrow the intervals most
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
