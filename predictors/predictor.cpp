#include "ftax/predict.hpp"
#include "graphs/base/interruption.hpp"
#include "graphs/base/mapped.hpp"
#include "predictors/memory.hpp"
#include "predictors/steps/steps.hpp"

namespace ftax {

/// A prediction has four steps. The constructor lowers the graph for its device and framework; then, for each binding
/// of its symbols, kernels are planned, launches are timed and the result is summarised.
struct Predictor::State {
    Prediction predict(const ShapeBindings& bindings, Explanation* explanation = nullptr) {
        prepared.bind(bindings, bound);
        plan_kernels(prepared, bound, plans);
        time_launches(prepared, bound, bindings, plans, times);
        return summarise(prepared, bound, bindings, plans, times, spans, explanation);
    }

    Explanation explain(const ShapeBindings& bindings) {
        Explanation result;
        result.prediction = predict(bindings, &result);
        for (const LaunchCosts& launch : costs()) result.launches.push_back(launch);
        simulate(times.on_clocks, prepared.timeline_options(), result.timeline);
        result.kernels.resize(1);  // the forward call has none
        for (const Launch& launch : prepared.schedule.launches)
            result.kernels.push_back(kernel_details(prepared, bound, plans, times.slowdown, launch));
        return result;
    }

    /// Costs of the forward call itself and of every launch.
    [[nodiscard]] std::vector<LaunchCosts> costs() const {
        std::vector<LaunchCosts> all = mapped(prepared.first_equal_launch, [&](auto i) { return times.costs[i]; });
        for (std::size_t i = 1; i < all.size(); ++i) all[i].op = prepared.schedule.launches[i - 1].op;
        return all;
    }

    PreparedModel prepared;
    // Buffers for the current binding, reused to avoid allocations.
    BoundShapes bound;
    KernelPlans plans;
    LaunchTimes times;
    std::vector<Span> spans;
    std::function<MemoryUse(const BoundShapes&)> memory;  ///< once it is asked for
};

Predictor::Predictor(const Graph& graph, DeviceProfile device, FrameworkProfile framework, PredictOptions options)
    : state_(new State{.prepared{graph, std::move(device), std::move(framework), options}}) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

Prediction Predictor::predict(const ShapeBindings& bindings) {
    stop_if_interrupted();
    return state_->predict(bindings);
}
Prediction Predictor::predict(const ShapeBindings& bindings, std::vector<LaunchCosts>& launches) {
    Prediction prediction = predict(bindings);
    launches = state_->costs();
    return prediction;
}
Explanation Predictor::explain(const ShapeBindings& bindings) {
    return state_->explain(bindings);
}
MemoryUse Predictor::memory(const ShapeBindings& bindings) {
    const PreparedModel& prepared = state_->prepared;
    prepared.bind(bindings, state_->bound);
    if (!state_->memory)
        state_->memory = memory_model(prepared.graph, prepared.schedule, prepared.model, prepared.device.device);
    return state_->memory(state_->bound);
}
bool Predictor::synchronized() const {
    return state_->prepared.synchronized();
}
const Graph& Predictor::graph() const {
    return state_->prepared.graph;
}
const DeviceProfile& Predictor::device() const {
    return state_->prepared.device;
}
const FrameworkProfile& Predictor::framework() const {
    return state_->prepared.framework;
}
const PredictOptions& Predictor::options() const {
    return state_->prepared.options;
}
Precision Predictor::precision() const {
    return state_->prepared.widened ? Precision::int8 : state_->prepared.options.precision;
}

}  // namespace ftax
