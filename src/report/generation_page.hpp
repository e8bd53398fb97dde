#pragma once

#include <string>

#include "src/report/generation_report.hpp"

namespace ftax::report {

/// The page of `ftax generate`: times over batches, both phases of the last batch kind by kind, memory. `graph` is that
/// in which the explanations count (Predictor::graph).
[[nodiscard]] std::string generation_page(const GenerationReport& report, const Graph& graph,
                                          const Explanation& prefill, const Explanation& decode);

}  // namespace ftax::report
