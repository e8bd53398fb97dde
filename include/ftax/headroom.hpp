#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ftax/predict.hpp"

namespace ftax {

/// Growth of one property of a model that the latency budget allows.
struct Headroom {
    std::string property;  ///< "batch", another dimension of the graph ("seq"), "width" or "depth"
    double from = 1;       ///< a dimension's value as bound; 1 for width and depth, which are factors
    double to = 1;         ///< the largest value within the budget
    double latency_s = 0;  ///< latency at `to`
    Bound bound = Bound::host;
    bool is_open = false;       ///< the search ended before the budget was used up
    double next_latency_s = 0;  ///< latency one step beyond `to`, and the largest value that takes no more than
    double next_to = 0;         ///< 0.5 % longer; 0 for depth and open searches
    std::string skipped;        ///< why the property cannot grow; empty if it can
    std::vector<std::pair<double, Prediction>> curve{};  ///< see draw_width()
};

/// Copies a graph with its hidden dimensions multiplied by numerator / denominator (at least 1).
/// Every weight dimension grows unless a graph input feeds it (colours, vocabulary, positions) or a head produces it
/// (the contraction that alone produces a graph output: classes, logits); activations follow. The numbers of filter
/// taps, groups of grouped convolutions and attention heads stay the same, so heads become wider.
/// Limits: recurrent operators, operators without a rule and computed weights keep their width; a dimension that is not
/// divisible is rounded down. Throws what bind() throws.
[[nodiscard]] Graph widened(const Graph& graph, const ShapeBindings& bindings, std::int64_t numerator,
                            std::int64_t denominator);

/// Finds how far each dimension set by `bindings`, the width and the depth can grow while the latency stays within (1 +
/// budget) times that of `bindings`. Depth repeats the model's launches on host and device, without the fixed cost of a
/// forward call. Source: Fernandez et al., arXiv 2302.06117, table 1.
/// `predictor` is that of the graph.
[[nodiscard]] std::vector<Headroom> find_headroom(const Graph& graph, const Predictor& predictor,
                                                  const ShapeBindings& bindings, double budget);

/// Gives the growth of the width that find_headroom() found its curve: predictions in steps of eighths, beyond `to` by
/// as much.
void draw_width(const Graph& graph, const Predictor& predictor, const ShapeBindings& bindings, Headroom& width);

}  // namespace ftax
