#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ftax/predict.hpp"
#include "src/report/prediction_report.hpp"

namespace ftax::report {

/// One card at one value of the dimension that varies.
struct ExplorerCurve {
    std::vector<PredictionRow> rows;  ///< one per batch
    std::vector<Crossover> crossovers;
};

struct ExplorerCard {
    std::string name;
    std::vector<ExplorerCurve> curves;  ///< one per value
};

/// Predictions of one model over cards, one of its dimensions, and batches.
struct ExplorerReport {
    std::string model, framework, host;
    Precision precision = Precision::fp32;
    ShapeBindings dims;                ///< that stay
    std::string dimension;             ///< that varies; empty for none
    std::vector<std::int64_t> values;  ///< of it; one that counts for nothing where none varies
    std::vector<std::int64_t> batches;
    std::vector<ExplorerCard> cards;
    std::vector<std::string> warnings;
};

/// One self-contained page with sliders over the predictions, none of which it calculates itself.
[[nodiscard]] std::string explorer_page(const ExplorerReport& report);

}  // namespace ftax::report
