#include <algorithm>
#include <cmath>
#include <vector>

#include "ftax/equations.hpp"
#include "ftax/predict.hpp"
#include "predictors/analysis/crossings.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/timeline/launch_costs.hpp"

namespace ftax {
namespace {

constexpr double least_slope =
    0.2;  ///< slope of log(device / host) over the logarithm of the batch: beyond a factor of 10 it is open

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

std::vector<Crossover> find_crossovers(Predictor& predictor, ShapeBindings bindings, std::int64_t largest) {
    const double gap_s = kernel_gap_s(predictor.framework(), predictor.device().device);
    std::vector<LaunchCosts> launches;
    // Behind the host, the device's kernels follow one another with their gaps.
    const auto at = [&](std::int64_t batch) {
        bindings["batch"] = batch;
        TwoSides sides{predictor.predict(bindings, launches).host_s, 0};
        for (const LaunchCosts& op : launches) sides.device_s += op.device_s + op.gaps_s(gap_s);
        return sides;
    };
    const auto log_ratio = [&](std::int64_t batch) {
        const TwoSides sides = at(batch);
        return std::log(sides.device_s / sides.host_s);
    };
    std::vector<Crossover> crossovers;
    for (const Crossing& crossing : find_crossings(1, largest, at)) {
        Crossover crossover{.batch = crossing.at, .gpu_waits_above = crossing.host_decides_above};
        // Converts the error of the ratio to one of the batch with the slope over an octave, since single steps are
        // uneven. Times grow at most in proportion to the batch.
        const auto left = std::max<std::int64_t>(1, std::llround(crossing.at * 0.7));
        const auto right = std::max<std::int64_t>(crossing.above, std::llround(crossing.at * 1.4));
        const double octaves = std::log(static_cast<double>(right) / static_cast<double>(left));
        const double slope = std::clamp(std::abs(log_ratio(right) - log_ratio(left)) / octaves, least_slope, 1.0);
        bindings["batch"] = crossing.above;
        const Prediction there = predictor.predict(bindings, launches);
        const double stddev = std::hypot(there.host_relative_stddev, there.device_relative_stddev);
        const double factor = std::exp(equations::normal_90 * stddev / slope);
        crossover.low = crossover.batch / factor;
        crossover.high = crossover.batch * factor;
        crossover.host_s = there.host_s;
        crossover.causes = largest_host_costs(launches);
        crossovers.push_back(std::move(crossover));
    }
    return crossovers;
}

}  // namespace ftax
