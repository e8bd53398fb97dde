#include <algorithm>

#include "ftax/work.hpp"
#include "graphs/base/mapped.hpp"
#include "predictors/kernels/pass_power.hpp"
#include "predictors/steps/steps.hpp"

namespace ftax {
namespace {

/// Returns the time of an operator that runs on the CPU, including its copies. Order-of-magnitude rates: pinned memory
/// over PCIe 3.0 x16, eight cores with 8-bit vector instructions, one memory channel.
double on_host_s(const Graph& graph, const BoundShapes& bound, const Launch& launch) {
    if (!launch.on_host) return 0;
    constexpr double copied_bytes_per_s = 12e9, operations_per_s = 2e11, touched_bytes_per_s = 10e9;
    double copied = 0;
    for (const TensorId id : launch.crossing)
        copied += static_cast<double>(element_count(graph.tensors[id], bound)) * bits_of(graph.tensors[id].dtype) / 8;
    const Work work = work_of(graph, graph.ops[launch.op], bound);
    return copied / copied_bytes_per_s +
           std::max(static_cast<double>(work.flops) / operations_per_s,
                    static_cast<double>(work.read_bytes + work.write_bytes) / touched_bytes_per_s);
}

class LaunchTimer {
  public:
    LaunchTimer(const PreparedModel& prepared, const BoundShapes& bound, const ShapeBindings& bindings,
                const KernelPlans& plans)
        : prepared_(prepared), costs_(prepared.costs), bound_(bound), plans_(plans) {
        sequences_ = value_or(bindings, "batch", 1);
        captured_ = prepared.libraries.captures_decoding && value_or(bindings, "seq", 0) == 1 &&
                    sequences_ <= prepared.model.serving.most_captured_sequences;
    }

    /// Times the forward call itself and an engine's work per sequence. Returns the part that follows the pass: an
    /// engine that schedules ahead overlaps the rest with the previous pass.
    double time_call(TimedLaunch& timed, LaunchCosts& costed) const {
        const LoweringTraits& traits = prepared_.model.traits;
        const HostKind beginning = traits.calls_engines ? HostKind::engine_call : HostKind::forward;
        const double sequences_s =
            traits.serves_sequences ? static_cast<double>(sequences_) * costs_[HostKind::sequence] : 0;
        costed = {{.op = no_op, .host_kind = beginning, .host_s = costs_[beginning], .bound = Bound::host}};
        costed.host_s += sequences_s;
        const double follows_s = prepared_.libraries.schedules_ahead ? sequences_s : 0;
        timed = {.host_s = costed.host_s - follows_s};
        return follows_s;
    }

    void time_launch(const Launch& launch, TimedLaunch& timed, LaunchCosts& costed) const {
        double longest_s = 0, further = 0;
        costed = {{.op = launch.op, .host_kind = launch.host_kind, .bound = Bound::host}};
        for (std::uint32_t i = 0; i < launch.kernel_count; ++i) {
            const std::optional<PlannedKernel>& one = plans_[prepared_.first_equal[launch.first_kernel + i]];
            if (!one) continue;
            costed.boost_s += one->seconds;
            costed.power_limited_s += one->power_limited_s;
            costed.throttling_s += throttling_seconds(one->seconds, one->power_limited_s);
            costed.sm_active_s += one->seconds * one->occupancy.sms;
            costed.warps_active_s += one->seconds * one->occupancy.warps;
            costed.kernels += one->launches;
            costed.step_launches += one->launches - 1;
            further += one->host_launches;
            if (one->seconds >= longest_s) {
                costed.bound = one->bound;
                costed.factor = one->factor;
            }
            longest_s = std::max(longest_s, one->seconds);
        }
        const bool skipped = launch.kernel_count > 0 && costed.kernels == 0;
        if (skipped && prepared_.schedule.kernels[launch.first_kernel].when != LaunchCondition::unless_viewable) {
            timed = {};
            return;
        }
        // For these shapes the copy is a view.
        if (skipped) costed.host_kind = HostKind::view;
        if (captured_) costed.host_kind = HostKind::graph_node;
        costed.module_calls = captured_ ? 0 : static_cast<std::int32_t>(launch.module_calls);
        costed.list_parts = static_cast<std::int32_t>(launch.list_parts);
        costed.blas_call = calls_blas(launch);
        costed.host_s = costs_[costed.host_kind] + costed.module_calls * costs_[HostKind::module_call] +
                        launch.list_parts * costs_[HostKind::list_part] +
                        step_launch_s(costed, launch.further_calls + further) +
                        (costed.blas_call ? costs_.blas_call_s : 0) + on_host_s(prepared_.graph, bound_, launch);
        costed.device_s = costed.boost_s;
        // Kernels that one call launches per step follow without the framework's gap: their floor includes it.
        timed = {costed.host_s, costed.device_s, costed.kernels - costed.step_launches,
                 launch.host_kind == HostKind::synchronize || launch.on_host, step_launch_s(costed, further)};
    }

  private:
    bool calls_blas(const Launch& launch) const {
        if (captured_) return false;
        if (launch.blas_call != BlasCall::at_batch_one) return launch.blas_call == BlasCall::always;
        const Graph& graph = prepared_.graph;
        return bound_[graph.tensors[graph.ops[launch.op].inputs[0]].shape[0]] == 1;
    }

    /// Host time of the further kernels of one call; 0 inside a CUDA graph.
    double step_launch_s(const LaunchCosts& costed, double further) const {
        return costed.host_kind == HostKind::graph_node ? 0 : (costed.step_launches + further) * costs_.step_launch_s;
    }

    const PreparedModel& prepared_;
    const HostCosts& costs_;
    const BoundShapes& bound_;
    const KernelPlans& plans_;
    std::int64_t sequences_ = 1;  ///< sequences per forward call
    bool captured_ = false;       ///< the forward call is one CUDA graph
};

/// Slows the kernels of a pass that would exceed the board's power limit.
void limit_power(const PreparedModel& prepared, LaunchTimes& times) {
    PassPower pass;
    for (const std::uint32_t i : prepared.first_equal_launch) {
        const LaunchCosts& op = times.costs[i];
        pass.add({op.boost_s + op.gaps_s(prepared.costs.kernel_gap_s), op.power_limited_s, op.throttling_s});
    }
    times.slowdown = pass.slowdown();
    if (times.slowdown == 0) return;
    for (std::size_t i = 0; i < times.costs.size(); ++i) {
        LaunchCosts& op = times.costs[i];
        if (prepared.first_equal_launch[i] < i || op.throttling_s == 0) continue;
        op.device_s = times.on_clocks[i].device_s = op.boost_s + times.slowdown * op.throttling_s;
        op.sm_active_s *= op.device_s / op.boost_s;
        op.warps_active_s *= op.device_s / op.boost_s;
    }
}

}  // namespace

void time_launches(const PreparedModel& prepared, const BoundShapes& bound, const ShapeBindings& bindings,
                   const KernelPlans& plans, LaunchTimes& times) {
    const std::vector<std::uint32_t>& first = prepared.first_equal_launch;
    times.on_clocks.resize(first.size());
    times.costs.resize(first.size());
    const LaunchTimer timer(prepared, bound, bindings, plans);
    times.follows_s = timer.time_call(times.on_clocks[0], times.costs[0]);
    for (std::size_t i = 1; i < first.size(); ++i)
        if (first[i] == i) timer.time_launch(prepared.schedule.launches[i - 1], times.on_clocks[i], times.costs[i]);
    limit_power(prepared, times);
    for (std::size_t i = 1; i < first.size(); ++i) times.on_clocks[i] = times.on_clocks[first[i]];
}

}  // namespace ftax
