#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ftax/predict.hpp"
#include "src/report/choice.hpp"
#include "src/report/columns.hpp"

namespace ftax::report {

/// One combination at one batch.
struct ComparisonRow : Choice {
    std::string device_profile;            ///< version
    std::optional<Prediction> prediction;  ///< nullopt if the combination cannot run the model
    double ratio_to_best = 0;              ///< latency relative to the fastest at the same batch
    std::optional<MemoryUse> memory{};
};

/// One model under several combinations of framework, device, precision and number of cards.
struct ComparisonReport {
    std::string model;
    std::string precision;  ///< a list
    ShapeBindings dims;
    std::vector<ComparisonRow> rows;  ///< the best first
    Ranking ranking;
    std::vector<std::string>
        warnings{};  ///< warnings of the file and the anchors; predictions have their own and those of their profiles
};

/// Fills in ratio_to_best from the rows' predictions and sorts the rows.
void rank(ComparisonReport& report);

[[nodiscard]] std::string title_of(const ComparisonReport& report);

/// Refer to the report.
[[nodiscard]] Columns<ComparisonRow> comparison_columns(const ComparisonReport& report);
[[nodiscard]] std::string to_table(const ComparisonReport& report, Style style);
[[nodiscard]] std::string to_json(const ComparisonReport& report);
[[nodiscard]] std::string to_csv(const ComparisonReport& report);

}  // namespace ftax::report
