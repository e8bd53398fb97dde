#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "ftax/predict.hpp"

namespace ftax {
namespace {

struct Balance {
    double log_ratio = 0;  ///< log(device / host): below zero the host decides
};

Balance balance_at(Predictor& predictor, ShapeBindings& bindings, std::int64_t batch) {
    bindings["batch"] = batch;
    const Prediction prediction = predictor.predict(bindings);
    return {std::log(prediction.device_s / prediction.host_s)};
}

std::vector<std::pair<OpId, double>> largest_host_costs(const Predictor& predictor) {
    std::vector<std::pair<OpId, double>> costs;
    for (const OpPrediction& op : predictor.operators()) {
        if (op.op != no_op) costs.emplace_back(op.op, op.host_s);
    }
    const auto count = std::min<std::size_t>(3, costs.size());
    std::partial_sort(costs.begin(), costs.begin() + static_cast<std::ptrdiff_t>(count), costs.end(),
                      [](const auto& a, const auto& b) { return a.second > b.second; });
    costs.resize(count);
    return costs;
}

}  // namespace

std::optional<Crossover> find_crossover(Predictor& predictor, ShapeBindings bindings, std::int64_t largest) {
    std::int64_t below = 1;
    double below_ratio = balance_at(predictor, bindings, below).log_ratio;
    if (below_ratio >= 0) return std::nullopt;
    // Device time grows with the batch: double until it exceeds the host's, then bisect.
    std::int64_t above = below;
    double above_ratio = below_ratio;
    while (above_ratio < 0) {
        if (above >= largest) return std::nullopt;
        below = above;
        below_ratio = above_ratio;
        above = std::min(above * 2, largest);
        above_ratio = balance_at(predictor, bindings, above).log_ratio;
    }
    while (above - below > 1) {
        const std::int64_t middle = below + (above - below) / 2;
        const double ratio = balance_at(predictor, bindings, middle).log_ratio;
        (ratio < 0 ? below : above) = middle;
        (ratio < 0 ? below_ratio : above_ratio) = ratio;
    }
    Crossover crossover;
    const double fraction = below_ratio / (below_ratio - above_ratio);
    crossover.batch = static_cast<double>(below) + fraction * static_cast<double>(above - below);
    crossover.low = crossover.high = crossover.batch;
    crossover.causes = largest_host_costs(predictor);
    return crossover;
}

}  // namespace ftax
