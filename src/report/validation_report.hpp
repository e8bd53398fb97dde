#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ftax/anchor.hpp"
#include "ftax/predict.hpp"
#include "graphs/base/statistics.hpp"
#include "graphs/files/csv.hpp"
#include "src/report/prediction_report.hpp"
#include "src/report/table.hpp"

namespace ftax::report {

template <class Row>
class Columns;

struct RowPrediction {
    double latency_s = 0;
    double low_s = 0, high_s = 0;  ///< 90 % interval
    Bound bound = Bound::host;
    double coverage = 1;  ///< share of the time that is modelled
    Evidence evidence = Evidence::unrated;
};

/// A row of a measurement file with its prediction.
struct ValidatedRow {
    double measured_s = 0;
    std::optional<RowPrediction> prediction;
    std::string skipped;             ///< why there is no prediction
    std::vector<std::string> group;  ///< values of the grouping columns
};

/// Errors of predictions against measurements: predicted / measured − 1.
struct ErrorStatistics : ErrorFigures {
    double bias = 0;    ///< mean of the signed error
    double inside = 0;  ///< share of measurements inside the 90 % interval
};

/// Summarises the rows with a prediction; nullopt if there is none.
[[nodiscard]] std::optional<ErrorStatistics> error_statistics(std::span<const ValidatedRow* const> rows);

struct ValidationGroup {
    std::vector<std::string> values;
    ErrorStatistics errors;
    std::optional<Hypothesis> cause{};  ///< the likeliest of its errors; none for operators and language models
};

struct SkippedRows {
    std::string reason;
    std::vector<std::size_t> lines;
};

struct UsedProfile {
    std::string kind;  ///< "device" or "framework"
    std::string name, version;
    std::string host;  ///< host of a framework's costs; empty for a device

    friend auto operator<=>(const UsedProfile&, const UsedProfile&) = default;
};

void add_used(std::set<UsedProfile>& profiles, const DeviceProfile& device, const FrameworkProfile& framework);

struct ValidationReport {
    std::vector<std::string> by;  ///< columns that group the rows
    std::vector<ValidationGroup> groups;
    std::optional<ErrorStatistics> overall;  ///< nullopt when no row could be predicted
    std::size_t rows = 0;
    std::vector<SkippedRows> skipped;
    std::vector<UsedProfile> profiles;  ///< sorted, unique
    std::vector<std::string> warnings{};
    std::map<std::string, AnchorPlan> anchors{};  ///< suggested measurements by GPU, if requested
};

/// Returns the values of a column, one per row; an absent or empty framework or precision has its default.
/// Returns nullopt for a column that the table lacks and that has no default.
[[nodiscard]] std::optional<std::vector<std::string>> column_values(const CsvTable& table, std::string_view column);

/// Summarises the rows of each value (one per row); sorted by value, numbers as numbers.
[[nodiscard]] std::vector<ValidationGroup> errors_by(std::span<const std::string> values,
                                                     std::span<const ValidatedRow> rows);

/// Groups rows of `table` (same order) and summarises their errors; groups sorted by their values.
[[nodiscard]] ValidationReport summarise(const CsvTable& table, std::vector<std::string> by,
                                         std::span<const ValidatedRow> rows);

[[nodiscard]] Columns<ErrorStatistics> error_columns();
/// A column for each of `by`, then the errors, and their likeliest cause if one of the groups has one.
[[nodiscard]] Columns<ValidationGroup> group_columns(const std::vector<std::string>& by,
                                                     std::span<const ValidationGroup> groups);
[[nodiscard]] const Columns<UsedProfile>& profile_columns();

[[nodiscard]] std::string verdict_of(const ValidationReport& report);
[[nodiscard]] std::string to_table(const ValidationReport& report, Style style);
[[nodiscard]] std::string to_json(const ValidationReport& report);
/// The table's own columns, then predicted_ms, low_ms, high_ms, bound, coverage, evidence, skipped; one output row per
/// input row, in order.
[[nodiscard]] std::string predictions_csv(const CsvTable& table, std::span<const ValidatedRow> rows);

}  // namespace ftax::report
