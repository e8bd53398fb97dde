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
    double from = 1;       ///< bound value of a dimension; 1 for width and depth, which are factors
    double to = 1;         ///< the largest value within the budget
    double latency_s = 0;  ///< latency at `to`
    Bound bound = Bound::host;
    bool is_open = false;       ///< the search ended before the budget was used up
    double next_latency_s = 0;  ///< latency one step beyond `to`; 0 for depth and open searches
    double next_to = 0;         ///< largest value whose latency is within 0.5 % of next_latency_s; 0 as above
    std::string skipped;        ///< why the property cannot grow; empty if it can
    std::vector<std::pair<double, Prediction>> curve{};  ///< factor and prediction, see draw_width(); else empty
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
/// forward call. `predictor` must predict `graph`. Throws what bind() throws.
/// Source: Fernandez et al., arXiv 2302.06117, table 1.
[[nodiscard]] std::vector<Headroom> find_headroom(const Graph& graph, const Predictor& predictor,
                                                  const ShapeBindings& bindings, double budget);

/// Fills in `curve` of the width found by find_headroom(): predictions from factor 1 to twice `to`, in steps of at
/// least 1/8. Throws what bind() throws.
void draw_width(const Graph& graph, const Predictor& predictor, const ShapeBindings& bindings, Headroom& width);

}  // namespace ftax
