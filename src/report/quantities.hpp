#pragma once

#include "ftax/memory.hpp"
#include "ftax/predict.hpp"
#include "src/report/columns.hpp"
#include "src/report/prediction_report.hpp"

/// Columns shared by several reports.
namespace ftax::report {

inline constexpr std::string_view bound_meaning =
    "bottleneck: `host`, `compute`, `memory` or `floor` (shortest kernel)";

[[nodiscard]] const Columns<Prediction>& prediction_columns();
[[nodiscard]] const Columns<MemoryUse>& memory_columns();
[[nodiscard]] const Columns<Crossover>& crossover_columns();

/// Components of the memory and their sum in bytes, the capacity of the device, and whether it fits.
[[nodiscard]] Json memory_json(const MemoryUse& memory);

/// "16.1 of 80 GB: weights 15 GB, …"
[[nodiscard]] std::string describe(const MemoryUse& memory);

/// Model, device, framework and precision: the beginning of a report in JSON.
[[nodiscard]] Json run_json(const PredictionReport& report);

/// The warnings of a report and of one of its rows.
[[nodiscard]] std::vector<std::string> joined(std::vector<std::string> of_report,
                                              const std::vector<std::string>& of_row);

/// Each warning once. Warnings that differ in numbers alone become one with their ranges: "batch 1 to 64: …". Warnings
/// that differ in the name alone become one with all names: "a10, l4: not measured".
[[nodiscard]] std::vector<std::string> merged(const std::vector<std::string>& warnings);

/// "fixed" if the model fixes the batch.
[[nodiscard]] Value batch_value(const std::optional<std::int64_t>& batch);

/// "1.2 to 1.5"
[[nodiscard]] Value range_value(double low, double high, std::string (*print)(double));

/// Name, value, uncertainty and source of fitted parameters; `digits`: precision in tables.
[[nodiscard]] Columns<Parameter> parameter_columns(int digits);

/// Two bars: host and device as shares of the longest in the table.
[[nodiscard]] Value host_and_device_bars(double host_s, double device_s, double longest_s);

}  // namespace ftax::report
