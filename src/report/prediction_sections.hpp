#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ftax/predict.hpp"
#include "src/report/breakdown.hpp"
#include "src/report/prediction_report.hpp"

/// Parts that the pages of `ftax predict` and `ftax crossover` share.
namespace ftax::report {

/// Host, versions and dimensions, in a line below the title.
[[nodiscard]] std::string facts_line(const PredictionReport& report);

/// The sentences that the terminal shows of the crossovers.
[[nodiscard]] std::string crossover_paragraph(const CrossoverReport& crossover);

[[nodiscard]] std::string predictions_section(const PredictionReport& report);

/// Whose host and which profile, how wide the interval is, every warning, how much of the model (as the framework runs
/// it) has a rule, and what has none.
[[nodiscard]] std::string rests_on_section(const PredictionReport& report, const Graph& graph);

/// What takes the memory of the device, each with a bar as long as its share of it.
[[nodiscard]] std::string memory_section(const MemoryUse& memory);

/// Host and device time by group, each with a bar as long as its share of the largest.
[[nodiscard]] std::string breakdown_section(std::string_view title, std::string_view id,
                                            const std::vector<Share>& shares);

/// Every parameter of both profiles with its source.
[[nodiscard]] std::string provenance_section(const PredictionReport& report);

}  // namespace ftax::report
