#include <algorithm>
#include <cmath>
#include <optional>

#include "ftax/equations.hpp"
#include "ftax/predict.hpp"
#include "predictors/timeline/launch_costs.hpp"

namespace ftax {
namespace {

struct Balance {
    double log_ratio = 0;  ///< log(device / host): below zero the host decides
    double stddev = 0;     ///< of log_ratio
};

Balance balance_at(Predictor& predictor, ShapeBindings& bindings, std::int64_t batch) {
    bindings["batch"] = batch;
    const Prediction prediction = predictor.predict(bindings);
    return {std::log(prediction.device_s / prediction.host_s),
            std::hypot(prediction.host_relative_stddev, prediction.device_relative_stddev)};
}

std::vector<HostCause> largest_host_costs(const std::vector<LaunchCosts>& launches) {
    std::vector<HostCause> causes(host_kind_count);
    for (const LaunchCosts& op : launches) {
        HostCause& cause = causes[static_cast<std::size_t>(op.host_kind)];
        cause.kind = op.host_kind;
        cause.host_s += op.host_s;
        ++cause.operations;
    }
    std::stable_sort(causes.begin(), causes.end(), [](const auto& a, const auto& b) { return a.host_s > b.host_s; });
    std::erase_if(causes, [](const HostCause& cause) { return cause.operations == 0; });
    causes.resize(std::min<std::size_t>(3, causes.size()));
    return causes;
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
    // Device time grows in proportion to the batch where it takes over: the ratio's error is the batch's.
    const double factor = std::exp(equations::normal_90 * balance_at(predictor, bindings, above).stddev);
    crossover.low = crossover.batch / factor;
    crossover.high = crossover.batch * factor;
    bindings["batch"] = above;
    std::vector<LaunchCosts> launches;
    crossover.host_s = predictor.predict(bindings, launches).host_s;
    crossover.causes = largest_host_costs(launches);
    return crossover;
}

}  // namespace ftax
