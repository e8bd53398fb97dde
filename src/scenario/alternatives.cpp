#include "src/scenario/alternatives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ftax/error.hpp"
#include "ftax/precision.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/files/csv.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/profiles/parameters.hpp"
#include "src/scenario/generation.hpp"

namespace ftax::scenario {
namespace {

/// What people write the model's program for: a measurement may be of another framework of the same by mistake.
std::string program_of(const std::string& framework) {
    if (framework_model(framework).traits.serves_sequences) return framework;
    for (const char* start : {"onnxruntime", "tensorrt"})
        if (framework.starts_with(start)) return start;
    return "torch";
}

/// Changes the arguments of a run; returns false for an effect that it has already.
bool change_arguments(RunArguments& run, Precision own, const Change& change) {
    using Options = PredictOptions;
    static const std::map<std::string, bool Options::*> options{{"copies", &Options::copies},
                                                                {"synchronized", &Options::synchronized},
                                                                {"channels-last", &Options::channels_last}};
    if (!change.from.empty() && std::ranges::count(change.from, name_of(own)) == 0) return false;
    const std::string framework = unversioned(run.framework);
    for (const auto& [effect, value] : change.effects) {
        if (const auto option = options.find(effect); option != options.end()) {
            if (std::exchange(run.options.*option->second, value == "1") == (value == "1")) return false;
        } else if (effect == "precision") {
            run.precision = value;
        } else if (effect == "version") {
            const std::string wanted = versioned(framework, value);
            if (std::exchange(run.framework, wanted) == wanted) return false;
        } else if (effect == "framework") {
            if (framework == value) return false;
            run.framework = value;
            run.host.clear();
            run.framework_profile.clear();
            run.costs.reset();
        }
    }
    return true;
}

void change_scenario(Scenario& scenario, FrameworkModel& model, const Change& change) {
    DeviceSpec& device = scenario.device.device;
    if (const double host = change.effect("host", 1); host != 1) {
        const double scale = host * host_parameter(scenario.framework, "host.scale");
        set_parameter(scenario.framework.parameters, {.name = "host.scale", .value = scale});
    }
    device.power_limit_w *= change.effect("power", 1);
    if (change.effect("base-clock", 0) == 1) {
        constexpr double typical = 0.7;
        const double clock = device.base_clock_hz ? *device.base_clock_hz / device.boost_clock_hz : typical;
        device.boost_clock_hz *= clock;
        for (auto& peak : device.peak_flops_per_s)
            if (peak) *peak *= clock;
    }
    if (change.effect("half-accumulation", 0) == 1) model.traits.half_accumulation = model.traits.half_products = true;
    kernels::ConvLibrary& library = model.traits.conv.library;
    if (change.effect("timed-convolutions", 0) == 1 && library == kernels::ConvLibrary::cudnn_heuristic)
        library = kernels::ConvLibrary::cudnn_timed;
}

/// The largest of the doubled batches whose latency is within 5 % of the run's.
std::optional<report::Advice> larger_batch(Predictor& predictor, const ShapeBindings& dims, std::int64_t batch,
                                           double latency_s) {
    constexpr double allowed = 1.05;
    constexpr std::int64_t largest = 4096;
    std::optional<report::Advice> best;
    for (std::int64_t larger = 2 * batch; larger <= largest; larger *= 2) {
        const Prediction p = predictor.predict(with_batch(dims, larger));
        if (p.latency_s > allowed * latency_s || !predictor.memory(with_batch(dims, larger)).fits()) break;
        const double speed = static_cast<double>(larger) / static_cast<double>(batch) * latency_s / p.latency_s;
        best = {"batch", fmt::format("batches of {}", larger), p.latency_s, p.low_s, p.high_s, speed, p.bound};
    }
    return best;
}

}  // namespace

double Change::effect(std::string_view key, double otherwise) const {
    const auto found = effects.find(key);
    return found == effects.end() ? otherwise : parse_number(found->second).value_or(otherwise);
}

std::vector<Change> changes_of(std::string_view framework) {
    static const CsvTable table(embedded_text("data/changes.csv"), "data/changes.csv");
    const std::string program = program_of(unversioned(framework));
    std::vector<Change> changes;
    for (std::size_t row = 0; row < table.rows(); ++row) {
        const auto cell = [&](std::string_view column) { return table.cell(row, column); };
        if (!cell("program").empty() && cell("program") != program) continue;
        Change& change = changes.emplace_back(Change{.name = std::string(cell("name")),
                                                     .sentence = std::string(cell("sentence")),
                                                     .code = std::string(cell("code")),
                                                     .prior = parse_number(cell("prior")).value(),
                                                     .from = words_of(cell("from"))});
        for (const std::string_view word : words_of(cell("change"))) change.effects.insert(split_at(word, '='));
    }
    return changes;
}

std::optional<Alternative> alternative(const Graph& graph, const ModelArguments& model, const RunArguments& run,
                                       const Change& change, const std::function<void(Scenario&)>& prepare) {
    HeldWarnings of_others;
    const GivenGraph same(GivenGraph::of_this_thread(), &of_others);
    ModelArguments lenient = model;
    lenient.strict = false;  // of the run itself, not of what it could be
    RunArguments changed = run;
    if (!change_arguments(changed, precision_of(graph, run), change)) return std::nullopt;
    try {
        Scenario scenario = resolve(graph, lenient, changed);
        if (prepare) prepare(scenario);
        auto rules = std::make_unique<FrameworkModel>(model_of(scenario.framework));
        change_scenario(scenario, *rules, change);
        scenario.framework.model = rules.get();
        return Alternative{std::move(rules),
                           {graph, std::move(scenario.device), std::move(scenario.framework), scenario.options}};
    } catch (const Error& error) {
        if (error.code() != ErrorCode::usage) throw;
        return std::nullopt;
    }
}

std::vector<report::Advice> advise(const Graph& graph, const ModelArguments& model, const RunArguments& run,
                                   std::optional<std::int64_t> batch) {
    constexpr double least_speed = 1.05;
    constexpr std::size_t most = 3;
    const ShapeBindings dims = dimension_bindings(graph, model), bindings = with_batch(dims, batch);
    Alternative unchanged = alternative(graph, model, run, {}).value();
    Predictor& own = unchanged.predictor;
    const double latency_s = own.predict(bindings).latency_s;
    std::vector<report::Advice> advice;
    if (const auto larger = batch ? larger_batch(own, dims, *batch, latency_s) : std::nullopt)
        advice.push_back(*larger);
    for (const Change& change : changes_of(run.framework)) {
        if (change.code.empty()) continue;
        std::optional<Alternative> changed = alternative(graph, model, run, change);
        if (!changed || !changed->predictor.memory(bindings).fits()) continue;
        const Prediction p = changed->predictor.predict(bindings);
        advice.push_back({change.name, change.code, p.latency_s, p.low_s, p.high_s, latency_s / p.latency_s, p.bound});
    }
    std::erase_if(advice, [&](const report::Advice& one) { return one.speed < least_speed; });
    std::ranges::stable_sort(advice, std::ranges::greater{}, &report::Advice::speed);
    if (advice.size() > most) advice.resize(most);
    if (advice.empty()) print_warnings({"no change that ftax knows makes this run 5 % faster (--advise)"});
    return advice;
}

const Quantity& budget_quantity() {
    static const Quantity quantity{"a budget from 1e-6 to 1000%, such as 5%", 1e-6, 10, {{"%", 0.01}, {"", 1}}};
    return quantity;
}

std::vector<report::FrameworkSwitch> other_frameworks(const Graph& graph, const Predictor& predictor,
                                                      const ModelArguments& model, const RunArguments& run,
                                                      std::optional<std::int64_t> batch) {
    const ShapeBindings bindings = with_batch(dimension_bindings(graph, model), batch);
    std::vector<std::pair<bool, report::FrameworkSwitch>> found;  // and whether it does not fit
    for (const FrameworkModel* other : framework_models()) {
        if (other->traits.serves_sequences && !is_decoder(graph)) continue;
        std::optional<Alternative> changed =
            alternative(graph, model, run,
                        {.effects = {{"framework", std::string(other->name)},
                                     {"precision", std::string(name_of(predictor.precision()))}}});
        if (!changed) continue;
        const Prediction p = changed->predictor.predict(bindings);
        found.emplace_back(
            !changed->predictor.memory(bindings).fits(),
            report::FrameworkSwitch{std::string(other->name), changed->predictor.framework().version, p.latency_s,
                                    p.bound, changed->predictor.framework().version != "uncalibrated", p.evidence});
    }
    std::ranges::stable_sort(found, {}, [](const auto& row) { return std::pair(row.first, row.second.latency_s); });
    return mapped(found, [](auto& row) { return std::move(row.second); });
}

}  // namespace ftax::scenario
