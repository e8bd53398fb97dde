#include "predictors/analysis/step_table.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "graphs/base/mapped.hpp"
#include "predictors/timeline/launch_costs.hpp"

namespace ftax {
namespace {

constexpr double tolerance = 0.003;
/// How often an interval is asked for before it is tested, which takes five points.
constexpr int patience = 4;

StepCost between(const StepCost& low, const StepCost& high, double share) {
    const auto mix = [share](double a, double b) { return a + share * (b - a); };
    return {mix(low.host_s, high.host_s), mix(low.device_s, high.device_s), mix(low.latency_s, high.latency_s),
            (share < 0.5 ? low : high).bound, mix(low.energy_j, high.energy_j)};
}

bool agree(const StepCost& a, const StepCost& b) {
    const auto near = [](double x, double y) { return std::abs(x - y) <= tolerance * y; };
    return near(a.device_s, b.device_s) && near(a.latency_s, b.latency_s);
}

std::int64_t power_below(std::int64_t value) {
    return value < 1 ? 0 : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(value)));
}

double share_of(std::int64_t low, std::int64_t high, double value) {
    return (value - static_cast<double>(low)) / static_cast<double>(high - low);
}

/// Looks at points that are no multiples of a tile, where stairs would pass for a slope.
template <class Agrees>
bool is_straight_inside(std::int64_t low, std::int64_t high, const Agrees& agrees) {
    for (const double share : {0.15, 0.57, 0.83}) {
        const std::int64_t inside = low + (static_cast<std::int64_t>(share * static_cast<double>(high - low)) | 1);
        if (inside > low && inside < high && !agrees(inside, share_of(low, high, static_cast<double>(inside))))
            return false;
    }
    return true;
}

StepCost cost_of(const Prediction& p) {
    return {p.host_s, p.device_s, p.latency_s, p.bound, p.power_w * p.latency_s};
}

}  // namespace

const StepCost& BendingTable::point(std::int64_t x, Curve& curve, std::int64_t y) {
    return kept_in(curve.costs, y, [&] { return function_(x, y); });
}

/// The straight interval around a value; nullopt where there is none yet.
template <class IsStraight>
std::optional<BendingTable::Interval> BendingTable::straight_interval(std::int64_t value,
                                                                      std::map<Interval, Straightness>& intervals,
                                                                      const IsStraight& is_straight) {
    std::int64_t low = power_below(value);
    std::int64_t high = std::max<std::int64_t>(1, 2 * low);
    while (high - low > 1) {
        Straightness& known = intervals[{low, high}];
        if (!known.straight && ++known.asked <= patience) return std::nullopt;
        if (!known.straight) known.straight = is_straight(low, high);
        if (*known.straight) return Interval{low, high};
        const std::int64_t middle = low + (high - low) / 2;
        (middle <= value ? low : high) = middle;
    }
    return std::nullopt;
}

StepCost BendingTable::along(std::int64_t x, double y) {
    Curve& curve = curves_[x];
    const auto whole = static_cast<std::int64_t>(y);
    if (whole < curve.straight.first || whole >= curve.straight.second) {
        const auto straight = straight_interval(whole, curve.intervals, [&](std::int64_t from, std::int64_t to) {
            const StepCost &first = point(x, curve, from), &last = point(x, curve, to);
            return is_straight_inside(from, to, [&](std::int64_t inside, double share) {
                return agree(between(first, last, share), point(x, curve, inside));
            });
        });
        if (!straight && tolerance * y > 0.5) return point(x, curve, std::llround(y));
        const auto [low, high] = straight.value_or(Interval{whole, whole + 1});
        const StepCost &first = point(x, curve, low), &last = point(x, curve, high);
        if (!straight) return between(first, last, share_of(low, high, y));
        curve.straight = *straight;
        curve.ends = {&first, &last};
    }
    const auto [low, high] = curve.straight;
    return between(*curve.ends.first, *curve.ends.second, share_of(low, high, y));
}

StepCost BendingTable::at(std::int64_t x, double y) {
    if (curves_.contains(x)) return along(x, y);
    auto& intervals = intervals_[power_below(static_cast<std::int64_t>(y))];
    const auto straight = straight_interval(x, intervals, [&](std::int64_t from, std::int64_t to) {
        const StepCost first = along(from, y), last = along(to, y);
        return is_straight_inside(from, to, [&](std::int64_t inside, double share) {
            return agree(between(first, last, share), along(inside, y));
        });
    });
    if (!straight) return along(x, y);
    const auto [low, high] = *straight;
    return between(along(low, y), along(high, y), share_of(low, high, static_cast<double>(x)));
}

StepTable::StepTable(Generator& generator, const StepOptions& options)
    : generator_(generator),
      options_(options),
      prompts_([this](std::int64_t tokens, std::int64_t keys) { return prompts(tokens, static_cast<double>(keys)); }),
      decoding_([this](std::int64_t sequences, std::int64_t context) { return decoding(sequences, context); }),
      sequence_s_(decoding(3, 0).host_s - decoding(2, 0).host_s) {  // one alone may be a CUDA graph (llama.cpp)
    Predictor& predictor = generator.predictor();
    std::vector<LaunchCosts> launches;
    static_cast<void>(predictor.predict(generator.pass({}, 1, 2, 0), launches));
    for (const LaunchCosts& launch : launches) {
        if (launch.op == no_op) forward_s_ += launch.host_s;
        if (launch.op == no_op || predictor.graph().ops[launch.op].kind == OpKind::attention)
            pieces_s_ += launch.host_s;
    }
}

StepCost StepTable::prompts(std::int64_t tokens, double keys) {
    tokens = std::max<std::int64_t>(1, tokens);
    const auto pass = [&](std::int64_t several, std::int64_t past) {
        const auto [found, added] = passes_.try_emplace({several, (tokens + several - 1) / several, past});
        StepCost& cost = found->second;
        if (!added) return cost;
        const ShapeBindings bindings = generator_.pass({}, several, (tokens + several - 1) / several, past);
        cost = cost_of(generator_.predictor().predict(bindings));
        if (options_.draft != nullptr) {
            const Prediction draft = options_.draft->predictor().predict(bindings);
            add_device(cost, draft.device_s, draft.power_w * draft.device_s);
        }
        // Several stand for what the device does, not for so many requests that the host takes care of.
        const double others_s = static_cast<double>(several - 1) * sequence_s_;
        cost.host_s -= others_s;
        cost.latency_s -= others_s;
        return cost;
    };
    // Tokens that attend to more keys than they are go on with a prompt; those with fewer are several prompts: between
    // the next powers of two, by the work of their attention.
    const double own_keys = static_cast<double>(tokens + 1) / 2;
    if (keys >= own_keys) return pass(1, std::llround(keys - own_keys));
    std::int64_t several = 1;
    while (2 * several <= tokens && own_keys / static_cast<double>(2 * several) >= keys) several *= 2;
    if (2 * several > tokens) return pass(several, 0);
    const double most = own_keys / static_cast<double>(several);
    return between(pass(several, 0), pass(2 * several, 0), (most - keys) / (most / 2));
}

StepCost StepTable::decoding(std::int64_t sequences, std::int64_t context) {
    sequences = std::max<std::int64_t>(1, sequences);
    const auto pass = [&](std::int64_t several, std::int64_t past) {
        return cost_of(generator_.decoder().predict(generator_.pass({}, several, 1, past)));
    };
    StepCost cost = pass(sequences, context);
    if (options_.draft_tokens == 0) return cost;
    // More tokens go through the layers, but a sequence's keys and values are read once for all of its own. Source:
    // FlashInfer and TRT-LLM-gen, decode kernels with several queries of a sequence in a tile.
    const StepCost one = pass(sequences, 0), all = pass(sequences * (1 + options_.draft_tokens), 0);
    add_device(cost, all.device_s - one.device_s, all.energy_j - one.energy_j);
    if (options_.draft != nullptr) {
        const Prediction draft = options_.draft->decoder().predict(generator_.pass({}, sequences, 1, context));
        const double seconds = static_cast<double>(options_.draft_tokens) * draft.device_s;
        add_device(cost, seconds, draft.power_w * seconds);
    }
    return cost;
}

/// Adds kernels of a step; a pause that the host leaves hides a part of them.
void StepTable::add_device(StepCost& cost, double seconds, double energy_j) const {
    const double pause_s = options_.schedules_ahead ? std::max(0.0, cost.host_s - cost.device_s) : 0;
    cost.device_s += seconds;
    cost.latency_s += std::max(0.0, seconds - pause_s);
    cost.energy_j += energy_j;
}

StepCost StepTable::operator()(const StepLoad& load) {
    const std::int64_t decoded = load.sequences * (1 + options_.draft_tokens);
    const std::int64_t tokens = load.prompt_tokens + decoded;
    const double keys = load.prompt_keys * static_cast<double>(load.prompt_tokens) / static_cast<double>(tokens);
    StepCost cost = load.prompt_tokens == 0 ? decoding_.at(load.sequences, load.context) : prompts_.at(tokens, keys);
    const auto wait = [&](double seconds) {
        cost.latency_s += seconds;
        cost.energy_j += seconds * mean_power_w(generator_.device(), 1, 1, 0);
    };
    if (load.prompt_tokens > 0 && tokens <= options_.captured_tokens) {
        wait(std::max(0.0, pieces_s_ - cost.device_s) - std::max(0.0, cost.host_s - cost.device_s));
        cost.host_s = pieces_s_;
    }
    if (load.prompt_tokens > 0 && load.sequences > 0) {
        const StepCost step = decoding_.at(load.sequences, load.context), empty = decoding_.at(load.sequences, 0);
        const double host_s = static_cast<double>(load.sequences) * sequence_s_;
        // Where the host of a pass takes longer than the device, the sequences' keys and values fill the pause.
        add_device(cost, std::max(0.0, step.device_s - empty.device_s), std::max(0.0, step.energy_j - empty.energy_j));
        cost.host_s += host_s;
        wait(host_s);
    }
    if (load.images > 0) {
        const StepCost& encoder =
            kept_in(images_, load.images, [&] { return cost_of(generator_.encode(load.images)); });
        for (const auto part : {&StepCost::host_s, &StepCost::device_s, &StepCost::latency_s, &StepCost::energy_j})
            cost.*part += encoder.*part;
    }
    // A sampler that sorts keeps the SMs at full power.
    const double seconds = options_.sampling_s * static_cast<double>(decoded + (load.prompt_tokens > 0 ? 1 : 0));
    cost.device_s += seconds;
    cost.latency_s += seconds;
    cost.energy_j += seconds * generator_.device().power_limit_w;
    cost.ahead_s = load.prompt_tokens > 0 ? forward_s_ : cost.host_s;
    return cost;
}

}  // namespace ftax
