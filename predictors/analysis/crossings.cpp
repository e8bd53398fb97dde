#include "predictors/analysis/crossings.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "ftax/equations.hpp"
#include "ftax/predict.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/timeline/launch_costs.hpp"

namespace ftax {
namespace {

constexpr std::int64_t finest_search = 16;     ///< steps without a change of sign, relative to their start
constexpr std::int64_t finest_bracket = 1024;  ///< steps with one
constexpr double level = 0.02;                 ///< threshold of log(device / host)

struct Sample {
    std::int64_t at = 0;
    TwoSides sides;
    [[nodiscard]] double log_ratio() const { return std::log(sides.device_s / sides.host_s); }
    [[nodiscard]] bool host_decides() const { return sides.host_s > sides.device_s; }
};

class Search {
  public:
    explicit Search(const std::function<TwoSides(std::int64_t)>& sides) : sides_(sides) {}

    [[nodiscard]] Sample sample(std::int64_t at) const { return {at, sides_(at)}; }

    void look_between(const Sample& a, const Sample& b) {
        const bool changes = a.host_decides() != b.host_decides(), wide = b.at > 2 * a.at;
        // Rising curves cannot cross if one ends below the other's start; over octaves by far, since none is smooth.
        const double margin = wide ? 2 : 1;
        const bool certain = !changes && (a.host_decides() ? margin * b.sides.device_s < a.sides.host_s
                                                           : margin * b.sides.host_s < a.sides.device_s);
        const std::int64_t finest = std::max<std::int64_t>(1, a.at / (changes ? finest_bracket : finest_search));
        if (!certain && b.at - a.at > finest) {
            const auto octaves = std::bit_width(static_cast<std::uint64_t>((b.at - 1) / a.at));
            const Sample middle = sample(wide ? a.at << (octaves / 2) : a.at + (b.at - a.at) / 2);
            look_between(a, middle);
            look_between(middle, b);
            return;
        }
        if (changes) add(a, b);
        farthest_ = std::max(farthest_, std::abs(b.log_ratio()));
    }

    [[nodiscard]] const std::vector<Crossing>& found() const { return found_; }

  private:
    void add(const Sample& a, const Sample& b) {
        if (!found_.empty() && farthest_ < level) {
            found_.pop_back();
            farthest_ = before_;
            return;
        }
        const double share = a.log_ratio() / (a.log_ratio() - b.log_ratio());
        found_.push_back(
            {a.at, b.at, static_cast<double>(a.at) + share * static_cast<double>(b.at - a.at), b.host_decides()});
        before_ = std::exchange(farthest_, 0);
    }

    const std::function<TwoSides(std::int64_t)>& sides_;
    std::vector<Crossing> found_;
    double farthest_ = 0;  ///< |log ratio| since the last crossing
    double before_ = 0;    ///< the same before it
};

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

std::vector<Crossing> find_crossings(std::int64_t first, std::int64_t last,
                                     const std::function<TwoSides(std::int64_t)>& sides) {
    if (first >= last) return {};
    Search search(sides);
    search.look_between(search.sample(first), search.sample(last));
    return search.found();
}

std::vector<Crossover> find_crossovers(Predictor& predictor, ShapeBindings bindings, std::int64_t largest) {
    const double gap_s = kernel_gap_s(predictor.framework(), predictor.options().libraries, predictor.device().device);
    std::vector<LaunchCosts> launches;
    // Behind the host, the device's kernels follow one another with their gaps.
    const auto at = [&](std::int64_t batch) {
        bindings["batch"] = batch;
        TwoSides sides{predictor.predict(bindings, launches).host_s, 0};
        for (const LaunchCosts& op : launches) sides.device_s += op.device_s + op.gaps_s(gap_s);
        return sides;
    };
    const auto log_ratio = [&](std::int64_t batch) { return Sample{batch, at(batch)}.log_ratio(); };
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
