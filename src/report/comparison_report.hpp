#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ftax/predict.hpp"
#include "src/report/columns.hpp"

namespace ftax::report {

/// One framework on one device at one batch.
struct ComparisonRow {
    std::string device;          ///< slug
    std::string device_profile;  ///< version
    std::string framework, framework_version, host;
    std::string unmeasured;  ///< family of the model, where no measured row of it stands behind the framework's rules
    std::optional<std::int64_t> batch;     ///< nullopt where the model's batch is fixed
    std::optional<Prediction> prediction;  ///< nullopt where the pair cannot run the model
    std::string skipped;                   ///< why there is no prediction
    double ratio_to_best = 0;              ///< latency against the fastest pair at the same batch
    std::optional<MemoryUse> memory{};
};

/// One model, frameworks and devices side by side.
struct ComparisonReport {
    std::string model;
    Precision precision = Precision::fp32;
    ShapeBindings dims;
    std::vector<ComparisonRow> rows;
    std::vector<std::string>
        warnings{};  ///< of the file and the anchors; each prediction has its own and its profiles'
};

/// Fills in ratio_to_best from the rows' predictions.
void rank(ComparisonReport& report);

/// Says of each framework that has none whose rows its rules rest on, once.
[[nodiscard]] std::vector<std::string> rules_without_rows(const ComparisonReport& report);

/// Refer to the report.
[[nodiscard]] Columns<ComparisonRow> comparison_columns(const ComparisonReport& report);
[[nodiscard]] std::string to_table(const ComparisonReport& report, Style style);
[[nodiscard]] std::string to_json(const ComparisonReport& report);
[[nodiscard]] std::string to_csv(const ComparisonReport& report);

}  // namespace ftax::report
