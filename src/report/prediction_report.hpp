#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ftax/anchor.hpp"
#include "ftax/memory.hpp"
#include "ftax/predict.hpp"
#include "src/report/table.hpp"

namespace ftax::report {

struct Grid;
template <class Row>
class Columns;

/// A measurement of a predicted row.
struct Measured {
    double latency_s = 0;
    std::optional<double> device_s;
};

/// Latency under the cheapest and the most expensive branches of data-dependent Ifs.
struct LatencyRange {
    double min_s = 0, max_s = 0;
};

/// Total cost of the launches of one kind or module.
struct Share {
    std::string name;
    int launches = 0, kernels = 0;
    double host_s = 0, device_s = 0;
};

struct PredictionRow {
    std::optional<std::int64_t> batch;  ///< nullopt if the model's batch is fixed
    Prediction prediction;
    std::optional<Measured> measured;
    std::optional<LatencyRange> branches;
    std::optional<MemoryUse> memory{};
    std::vector<Share> parts{};  ///< the networks of a pipeline
};

/// What may explain measured latencies.
struct Hypothesis {
    std::string name, sentence;
    std::vector<double> latency_s{};  ///< predicted under it, of each measured row
    double share = 0;                 ///< of the probability of all of them
};

/// A change that makes a run faster.
struct Advice {
    std::string name, code;  ///< "torch-compile", and what makes the change
    double latency_s = 0, low_s = 0, high_s = 0;
    double speed = 1;  ///< items per second relative to the run
    Bound bound = Bound::host;
};

/// Batch crossovers of host and device, or the bottleneck at all batches.
struct CrossoverReport {
    std::vector<Crossover> crossovers;
    Bound bound = Bound::host;  ///< at all batches if there is no crossover
    std::int64_t largest = 0;   ///< end of the range
};

/// Predictions of one model over batches, with provenance.
struct PredictionReport {
    std::string model;
    DeviceProfile device;
    FrameworkProfile framework;
    Precision precision = Precision::fp32;
    ShapeBindings dims;
    std::vector<PredictionRow> rows;
    std::optional<CrossoverReport> crossover;  ///< nullopt if the batch is fixed
    std::optional<AnchorPlan> anchors;         ///< suggested measurements, if requested
    std::optional<Explanation> explained{};    ///< of the last row, for --explain-interval
    std::string measured{};                    ///< first line, if latencies were measured
    std::vector<Hypothesis> diagnosis{};       ///< of the measured latencies, the most likely first
    std::vector<Advice> advice{};              ///< the best changes of the first row, if requested
    std::vector<std::string> warnings{};  ///< warnings of the file, profiles and anchors; predictions have their own
};

/// Returns the minimum of each share over the rows.
[[nodiscard]] Coverage lowest_coverage(const std::vector<PredictionRow>& rows);

/// Returns the first line of a report: the latency of the first and the last row, and what bounds them.
[[nodiscard]] std::string verdict_of(const PredictionReport& report);

/// Returns the provenance of a result as human-readable lines: model, device, framework, host, profile versions.
[[nodiscard]] std::string print_header(const PredictionReport& report, Style style);
[[nodiscard]] std::string print_crossover(const CrossoverReport& crossover, Style style);

[[nodiscard]] std::string print_explained(const Explanation& explained);
[[nodiscard]] std::string print_anchors(const AnchorPlan& plan);

/// Tables and pages omit hypotheses below this share.
inline constexpr double negligible_share = 0.01;
/// Selections of the columns for a table, a page or JSON.
[[nodiscard]] Grid diagnosis_grid(const PredictionReport& report, std::string_view keys,
                                  double least_share = negligible_share);
[[nodiscard]] Grid advice_grid(const PredictionReport& report, std::string_view keys);

/// Refer to the report.
[[nodiscard]] Columns<PredictionRow> prediction_row_columns(const PredictionReport& report);
[[nodiscard]] std::string to_table(const PredictionReport& report, Style style);
[[nodiscard]] std::string to_json(const PredictionReport& report);
[[nodiscard]] std::string to_csv(const PredictionReport& report);

}  // namespace ftax::report
