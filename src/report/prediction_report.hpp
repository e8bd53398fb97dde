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

template <class Row>
class Columns;

/// What a measurement says beside a prediction.
struct Measured {
    double latency_s = 0;
    std::optional<double> device_s;
};

/// Latency under the cheapest and the dearest branches of Ifs whose conditions depend on data.
struct LatencyRange {
    double min_s = 0, max_s = 0;
};

struct PredictionRow {
    std::optional<std::int64_t> batch;  ///< nullopt where the model's batch is fixed
    Prediction prediction;
    std::optional<Measured> measured;
    std::optional<LatencyRange> branches;
    std::optional<MemoryUse> memory{};
};

/// Where along the batch host and device change places, or on which side it stays.
struct CrossoverReport {
    std::vector<Crossover> crossovers;
    Bound bound = Bound::host;  ///< over the whole range when there is no crossover
    std::int64_t largest = 0;   ///< end of the range
};

/// Predictions of one model over batches, with all they rest on.
struct PredictionReport {
    std::string model;
    DeviceProfile device;
    FrameworkProfile framework;
    Precision precision = Precision::fp32;
    ShapeBindings dims;
    std::vector<PredictionRow> rows;
    std::optional<CrossoverReport> crossover;  ///< nullopt where the batch is fixed
    std::optional<AnchorPlan> anchors;         ///< what to measure next, where it was asked for
    std::string measured{};                    ///< the first line, where a latency was measured
    std::vector<std::string> warnings{};  ///< of the file, the profiles and the anchors; predictions have their own
};

/// The least of each share over the rows.
[[nodiscard]] Coverage lowest_coverage(const std::vector<PredictionRow>& rows);

/// What a result rests on: model, device, framework, host, profile versions, as lines for people.
[[nodiscard]] std::string print_header(const PredictionReport& report, Style style);
[[nodiscard]] std::string print_crossover(const CrossoverReport& crossover, Style style);

[[nodiscard]] std::string print_anchors(const AnchorPlan& plan);

/// Refer to the report.
[[nodiscard]] Columns<PredictionRow> prediction_row_columns(const PredictionReport& report);
[[nodiscard]] std::string to_table(const PredictionReport& report, Style style);
/// Schema: docs/formats.md.
[[nodiscard]] std::string to_json(const PredictionReport& report);
[[nodiscard]] std::string to_csv(const PredictionReport& report);

}  // namespace ftax::report
