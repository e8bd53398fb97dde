#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ftax/predict.hpp"

namespace ftax {

/// How far one property of a model can grow before a run takes longer than its budget.
struct Headroom {
    std::string property;  ///< "batch", another dimension of the graph ("seq"), "width" or "depth"
    double from = 1;       ///< a dimension's value as bound; 1 for width and depth, which are factors
    double to = 1;         ///< the largest value within the budget
    double latency_s = 0;  ///< there
    Bound bound = Bound::host;
    bool is_open = false;  ///< the search ended before the budget did
    std::string skipped;   ///< why the property cannot grow; empty when it can
};

/// Copies a graph with its hidden dimensions multiplied by numerator / denominator (at least 1).
/// Every weight dimension grows that is neither fed by a graph input (colours, vocabulary, positions) nor the result of
/// a head (the contraction that a graph output comes from alone: classes, logits), and every activation that follows
/// from them; filters, groups of grouped convolutions and attention heads keep their number, so that heads get wider.
/// Limits: recurrent operators and operators without a rule keep their width; weights that other operators compute do
/// so too; a dimension that the factor does not divide is rounded down.
/// Throws what bind() throws.
[[nodiscard]] Graph widened(const Graph& graph, const ShapeBindings& bindings, std::int64_t numerator,
                            std::int64_t denominator);

/// Tells for every dimension that `bindings` sets, for width and for depth how far it can grow while the latency stays
/// within (1 + budget) times that of `bindings`. Depth repeats what the model launches, host and device alike, without
/// the fixed cost of a forward call. Source: Fernandez et al., arXiv 2302.06117, table 1.
[[nodiscard]] std::vector<Headroom> find_headroom(const Graph& graph, const DeviceProfile& device,
                                                  const FrameworkProfile& framework, const PredictOptions& options,
                                                  const ShapeBindings& bindings, double budget);

}  // namespace ftax
