#include "src/scenario/alternatives.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include "ftax/error.hpp"
#include "ftax/precision.hpp"
#include "graphs/base/embedded.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/near_names.hpp"
#include "graphs/files/csv.hpp"
#include "predictors/host/host_costs.hpp"
#include "predictors/profiles/parameters.hpp"
#include "src/report/table.hpp"
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
    if (change.effect("half-accumulation", 0) == 1) model.traits.half_accumulation = true;
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
    return parse_number(value_or(effects, key, {})).value_or(otherwise);
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
    ModelArguments lenient = model;
    lenient.strict = false;  // of the run itself, not of what it could be
    HeldWarnings of_others;
    RunArguments changed = run;
    changed.held = &of_others;
    if (!change_arguments(changed, precision_of(graph, changed), change)) return std::nullopt;
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

namespace {

/// Noise of a measured row. Source: framework_tax.csv, spread around the mean of a model on one host.
constexpr double row_log_stddev = 0.05;

/// Log density of residuals that share normal errors: a column of `shared` has an error's part in each row.
double log_density(const Eigen::VectorXd& residuals, const Eigen::MatrixXd& shared) {
    Eigen::MatrixXd covariance = shared * shared.transpose();
    covariance.diagonal().array() += row_log_stddev * row_log_stddev;
    const Eigen::LLT<Eigen::MatrixXd> root(covariance);
    const Eigen::MatrixXd factor = root.matrixL();
    return -residuals.dot(root.solve(residuals)) / 2 - factor.diagonal().array().log().sum();
}

/// How much of the host's error a latency has: the probability that the host takes longer than the device.
double host_share(const Prediction& prediction) {
    const double spread = std::hypot(prediction.host_relative_stddev, prediction.device_relative_stddev);
    const double ahead = std::log(prediction.host_s / prediction.device_s) / std::max(spread, row_log_stddev);
    return std::erfc(-ahead / std::numbers::sqrt2) / 2;
}

/// Of the row farthest from its prediction, and of the most likely cause.
std::string first_line(const report::PredictionReport& report, const std::vector<const report::PredictionRow*>& rows) {
    using report::duration;
    const auto ratio = [](const report::PredictionRow* row) {
        return row->measured->latency_s / row->prediction.latency_s;
    };
    const report::PredictionRow& row =
        **std::ranges::max_element(rows, {}, [&](const auto* one) { return std::abs(std::log(ratio(one))); });
    const Prediction& p = row.prediction;
    const double measured_s = row.measured->latency_s;
    return fmt::format(
        "measured {}{} is {} times the predicted {}, {} the 90 % interval of {} to {}; {} "
        "({:.0f} %): {}",
        duration(measured_s), rows.size() > 1 ? fmt::format(" at batch {}", *row.batch) : "",
        report::significant(ratio(&row)), duration(p.latency_s),
        measured_s >= p.low_s && measured_s <= p.high_s ? "inside" : "outside", duration(p.low_s), duration(p.high_s),
        report.diagnosis.front().share < 0.5 ? "possibly" : "most likely", 100 * report.diagnosis.front().share,
        report.diagnosis.front().sentence);
}

}  // namespace

std::vector<report::Hypothesis> rank_causes(std::span<const MeasuredRun> runs, std::string_view framework,
                                            const PredictUnder& predict_under) {
    const auto rows = static_cast<Eigen::Index>(runs.size());
    std::map<std::string, Eigen::Index> columns{{"spread", 0}};  // of errors that runs share
    for (const MeasuredRun& run : runs)
        for (const std::string& shared : {run.machine, run.network}) columns.try_emplace(shared, std::ssize(columns));
    std::vector<report::Hypothesis> ranked;
    for (const Change& cause : changes_of(framework)) {
        if (cause.prior == 0) continue;
        // Some causes are none of the run, but of the reading of its time.
        const bool same_run = std::ranges::all_of(
            cause.effects, [](const auto& effect) { return has_word("reading per-item spread", effect.first); });
        std::vector<std::optional<Prediction>> changed(runs.size());
        if (!same_run) changed = predict_under(cause);
        if (!same_run && std::ranges::none_of(changed, &std::optional<Prediction>::has_value)) continue;
        report::Hypothesis hypothesis{cause.name, cause.sentence};
        Eigen::VectorXd residuals(rows);
        Eigen::MatrixXd shared = Eigen::MatrixXd::Zero(rows, std::ssize(columns));
        double change = 0, gain = 0;  // of the sum of squared errors
        for (Eigen::Index i = 0; i < rows; ++i) {
            const MeasuredRun& run = runs[static_cast<std::size_t>(i)];
            const Prediction& predicted = changed[static_cast<std::size_t>(i)].value_or(run.own);
            const double latency_s =
                predicted.latency_s * cause.effect("reading", 1) / (cause.effects.contains("per-item") ? run.items : 1);
            const double host = host_share(predicted);
            hypothesis.latency_s.push_back(latency_s);
            residuals[i] = std::log(run.latency_s / latency_s);
            // One host and one card, whatever the cause: its errors are those of the run.
            shared(i, columns[run.machine]) = host * run.own.host_relative_stddev;
            shared(i, columns[run.network]) = (1 - host) * run.own.device_relative_stddev;
            shared(i, 0) = cause.effect("spread", 0);
            const double own = std::log(run.latency_s / run.own.latency_s);
            change = std::max(change, std::abs(own - residuals[i]));
            gain += own * own - residuals[i] * residuals[i];
        }
        // A cause moves the prediction towards the measurement, by more than its noise.
        const bool is_own = cause.name == "right" || cause.name == "unknown";
        if (!is_own && (change < row_log_stddev || gain <= 0)) continue;
        hypothesis.share = std::log(cause.prior) + log_density(residuals, shared);
        ranked.push_back(std::move(hypothesis));
    }
    std::ranges::stable_sort(ranked, std::ranges::greater{}, &report::Hypothesis::share);
    double sum = 0;
    const double largest = ranked.front().share;
    for (report::Hypothesis& one : ranked) sum += one.share = std::exp(one.share - largest);
    for (report::Hypothesis& one : ranked) one.share /= sum;
    return ranked;
}

void diagnose(const Graph& graph, const ModelArguments& model, const RunArguments& run,
              report::PredictionReport& report) {
    std::vector<const report::PredictionRow*> rows;
    std::vector<MeasuredRun> runs;
    for (const report::PredictionRow& row : report.rows) {
        if (!row.measured) continue;
        const auto items = static_cast<double>(row.batch.value_or(fixed_batch(graph).value_or(1)));
        runs.push_back({row.measured->latency_s, items, row.prediction});
        rows.push_back(&row);
    }
    if (rows.empty()) return;
    report.diagnosis = rank_causes(runs, run.framework, [&](const Change& cause) {
        std::vector<std::optional<Prediction>> predictions(rows.size());
        std::optional<Alternative> changed = alternative(graph, model, run, cause);
        for (std::size_t i = 0; changed && i < rows.size(); ++i)
            predictions[i] = changed->predictor.predict(with_batch(report.dims, rows[i]->batch));
        return predictions;
    });
    report.measured = first_line(report, rows);
}

}  // namespace ftax::scenario
