#include "ftax/headroom.hpp"

#include <algorithm>

#include "predictors/timeline/launch_costs.hpp"

namespace ftax {
namespace {

constexpr std::int64_t largest_growth = 4096;  ///< a dimension relative to its value
constexpr std::int64_t width_steps = 8;        ///< width grows in eighths: channel counts are multiples of 8
constexpr std::int64_t widest = width_steps * 32;

struct Reached {
    std::int64_t value = 0;
    Prediction prediction;
};

/// Finds the largest value from `from` to `most` whose latency is within the limit: doubles, then bisects. Ignores
/// latencies that drop below the limit again at larger values.
template <class Predict>
Reached largest_within(std::int64_t from, std::int64_t most, double limit_s, const Predict& predict) {
    Reached best{from, predict(from)};
    std::int64_t above = from;
    while (above < most) {
        above = std::min(above * 2, most);
        const Prediction prediction = predict(above);
        if (prediction.latency_s > limit_s) break;
        best = {above, prediction};
    }
    while (above - best.value > 1) {
        const std::int64_t middle = best.value + (above - best.value) / 2;
        const Prediction prediction = predict(middle);
        if (prediction.latency_s <= limit_s) {
            best = {middle, prediction};
        } else {
            above = middle;
        }
    }
    return best;
}

Prediction predict_widened(const Graph& graph, const Predictor& of_graph, const ShapeBindings& bindings,
                           std::int64_t eighths) {
    const Graph wide = widened(graph, bindings, eighths, width_steps);
    return Predictor(wide, of_graph.device(), of_graph.framework(), of_graph.options()).predict(bindings);
}

}  // namespace

std::vector<Headroom> find_headroom(const Graph& graph, const Predictor& of_graph, const ShapeBindings& bindings,
                                    double budget) {
    Predictor predictor(graph, of_graph.device(), of_graph.framework(), of_graph.options());
    std::vector<LaunchCosts> launches;
    const Prediction base = predictor.predict(bindings, launches);
    const double fixed_s = launches.front().host_s;
    const double limit_s = base.latency_s * (1 + budget);

    std::vector<Headroom> result;
    const auto add = [&](const std::string& property, std::int64_t from, std::int64_t most, std::int64_t unit,
                         const auto& predict) {
        constexpr double level = 1.005;  // a plateau of latencies
        const auto in_units = [&](std::int64_t value) {
            return static_cast<double>(value) / static_cast<double>(unit);
        };
        Reached reached = largest_within(from, most, limit_s, predict);
        Headroom& growth = result.emplace_back(Headroom{.property = property,
                                                        .from = in_units(from),
                                                        .to = in_units(reached.value),
                                                        .latency_s = reached.prediction.latency_s,
                                                        .bound = reached.prediction.bound,
                                                        .is_open = reached.value == most});
        if (growth.is_open) return reached;
        growth.next_latency_s = predict(reached.value + 1).latency_s;
        growth.next_to =
            in_units(largest_within(reached.value + 1, most, level * growth.next_latency_s, predict).value);
        return reached;
    };
    for (const auto& [symbol, value] : bindings) {
        // Clang cannot capture structured bindings directly.
        add(symbol, value, value * largest_growth, 1, [&, &name = symbol](std::int64_t grown) {
            ShapeBindings larger = bindings;
            larger[name] = grown;
            return predictor.predict(larger);
        });
    }

    const Reached width = add("width", width_steps, widest, width_steps, [&](std::int64_t eighths) {
        return predict_widened(graph, predictor, bindings, eighths);
    });
    if (width.value == widest && width.prediction.device_s == base.device_s)
        result.back().skipped = "no dimension follows from a weight";

    const double body_s = base.latency_s - fixed_s;
    Headroom depth{.property = "depth", .latency_s = limit_s, .bound = base.bound};
    if (body_s > 0) {
        depth.to = 1 + budget * base.latency_s / body_s;
    } else {
        depth.skipped = "the model launches nothing";
    }
    result.push_back(depth);
    return result;
}

void draw_width(const Graph& graph, const Predictor& predictor, const ShapeBindings& bindings, Headroom& width) {
    const auto flat = static_cast<std::int64_t>(width.to * width_steps);
    const std::int64_t step = std::max<std::int64_t>(1, flat / width_steps / 2);
    width.curve.clear();
    for (std::int64_t wide = width_steps; wide <= std::min(2 * flat, widest); wide += step)
        width.curve.emplace_back(static_cast<double>(wide) / width_steps,
                                 predict_widened(graph, predictor, bindings, wide));
}

}  // namespace ftax
