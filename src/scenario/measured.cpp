#include "src/scenario/measured.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "src/io/number.hpp"
#include "src/report/units.hpp"

namespace ftax::scenario {

std::optional<double> parse_duration(std::string_view text) {
    for (const auto& [unit, seconds] : {std::pair<std::string_view, double>{"ms", 1e-3}, {"us", 1e-6}, {"s", 1.0}}) {
        if (!text.ends_with(unit)) continue;
        text.remove_suffix(unit.size());
        const auto number = parse_number(text);
        return number && *number > 0 && std::isfinite(*number) ? std::optional(*number * seconds) : std::nullopt;
    }
    return std::nullopt;
}

std::string explain_measured(const Graph& graph, const ModelArguments& model, const RunArguments& run,
                             std::optional<std::int64_t> batch, const Prediction& predicted, double measured_s) {
    constexpr double thousand = 1000, nearly = 2;
    using report::duration;
    const double ratio = measured_s / predicted.latency_s;
    RunArguments anchored = run;
    anchored.known = Measurement{.gpu = device_profile(run.device, run.device_profile).device.slug,
                                 .framework = run.framework.substr(0, run.framework.find('@')),
                                 .precision = precision_of(graph, run),
                                 .model = model.model,
                                 .batch = batch.value_or(fixed_batch(graph).value_or(1)),
                                 .latency_s = measured_s};
    const Prediction known =
        make_predictor(graph, model, anchored).predict(with_batch(dimension_bindings(graph, model), batch));
    const bool inside = measured_s >= predicted.low_s && measured_s <= predicted.high_s;
    std::string text = fmt::format(
        "measured {} is {} times the predicted {}, {} the 90 % interval of {} to {}; as an anchor it makes {} {:.2f} "
        "times as long and the prediction {} ({} to {})",
        duration(measured_s), report::significant(ratio), duration(predicted.latency_s), inside ? "inside" : "outside",
        duration(predicted.low_s), duration(predicted.high_s),
        known.bound == Bound::host ? "the host's dispatch" : "the kernels",
        known.bound == Bound::host ? known.host_s / predicted.host_s : known.device_s / predicted.device_s,
        duration(known.latency_s), duration(known.low_s), duration(known.high_s));
    for (const double factor : {thousand, 1 / thousand}) {
        if (ratio < factor * nearly && ratio > factor / nearly)
            text += fmt::format("; a factor of {:g}: is the unit right?", thousand);
    }
    return text;
}

}  // namespace ftax::scenario
