#pragma once

#include <vector>

#include "ftax/nas.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/kernels/pass_power.hpp"
#include "predictors/timeline/launch_costs.hpp"
#include "predictors/timeline/segment.hpp"

namespace ftax::nas {

/// A network with the number of operators after each of its blocks.
struct BuiltNetwork {
    Graph graph;
    std::vector<std::size_t> ends;
};

/// Throws Error{limit} beyond a million operators, Error{model} for a network without any.
[[nodiscard]] BuiltNetwork build_network(const Space& space, std::span<const int> choices,
                                         std::span<const Block> chain);

/// One scheduled operation of a network before a campaign scales it.
struct TimedOperation {
    double host_s = 0;
    PassPower device;  ///< its contribution to the pass
    int kernels = 0;
    Factor factor = Factor::elementwise;
};

struct TimedNetwork {
    std::vector<TimedOperation> beginning;  ///< once per forward pass
    std::vector<std::vector<TimedOperation>> blocks;
};

/// Predicts a network and assigns its launches to blocks; `predictor` is that of the built graph.
[[nodiscard]] TimedNetwork timed_network(const BuiltNetwork& built, Predictor& predictor, ShapeBindings dims,
                                         std::int64_t batch);

/// Turns timed operations into segments with the scalars of one campaign.
struct SegmentMaker {
    double launch_latency_s = 0, kernel_gap_s = 0, wait_s = 0;
    double host_scale = 1;
    std::array<double, factor_count> device_scale{};  ///< scale of each kernel class
    bool waits = false;
    bool synchronized = false;  ///< each run waits for the previous one

    SegmentMaker(const HostCosts& costs, const Campaign& campaign, const Space& space, bool runs_wait)
        : launch_latency_s(costs.launch_latency_s),
          kernel_gap_s(costs.kernel_gap_s),
          wait_s(costs[HostKind::synchronize]),
          host_scale(campaign.host_scale),
          device_scale(campaign.class_scale),
          waits(campaign.waits_after_blocks.value_or(space.waits_after_blocks())),
          synchronized(runs_wait) {
        for (double& scale : device_scale) scale *= campaign.device_scale;
    }

    [[nodiscard]] double scale_of(const TimedOperation& op) const {
        return device_scale[static_cast<std::size_t>(op.factor)];
    }
    [[nodiscard]] PassPower power(std::span<const TimedOperation> operations) const {
        PassPower sum;
        for (const TimedOperation& op : operations) {
            sum.add(op.device, scale_of(op));
            sum.seconds += op.kernels * kernel_gap_s;
        }
        return sum;
    }
    /// `slowdown` is that of the whole pass (PassPower::slowdown).
    [[nodiscard]] Segment run(std::span<const TimedOperation> operations, double slowdown) const {
        Segment segment;
        for (const TimedOperation& op : operations) {
            const double device_s = (op.device.seconds + slowdown * op.device.throttling_s) * scale_of(op);
            segment = segment.then(
                Segment::launch(op.host_s * host_scale, device_s, op.kernels, launch_latency_s, kernel_gap_s));
        }
        return segment;
    }
    [[nodiscard]] Segment block(std::span<const TimedOperation> operations, double slowdown) const {
        const Segment segment = run(operations, slowdown);
        return waits ? segment.then(Segment::wait(wait_s * host_scale)) : segment;
    }
    /// A whole network, slowed by its own power.
    [[nodiscard]] Segment pass(const TimedNetwork& network) const {
        PassPower sum;
        for (const auto& operations : network.blocks) sum.add(power(operations));
        Segment total = run(network.beginning, 0);
        for (const auto& operations : network.blocks) total = total.then(block(operations, sum.slowdown()));
        return total;
    }
    [[nodiscard]] double latency_s(const Segment& network) const {
        return synchronized ? network.latency_s() : network.period_s();
    }
};

}  // namespace ftax::nas
