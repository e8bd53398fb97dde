#pragma once

#include <string>

#include "src/report/generation_report.hpp"

namespace ftax::report {

/// A pass and the graph in which its explanation counts (Predictor::graph).
struct ExplainedPass {
    const Graph& graph;
    Explanation explanation;
};

/// The page of `ftax generate`: times over batches, both phases of the last batch kind by kind, memory.
[[nodiscard]] std::string generation_page(const GenerationReport& report, const ExplainedPass& prefill,
                                          const ExplainedPass& decode);

}  // namespace ftax::report
