#include "calibration/crossvalidation/serving_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "calibration/fit/serving_fit.hpp"
#include "ftax/error.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "src/core/statistics.hpp"
#include "src/scenario/language_rows.hpp"

namespace ftax::folds {
namespace {

constexpr double unit_s = 1e-3;  // of the host costs that tell a row's dependence on them; the dependence is linear

FrameworkProfile with_costs(const std::string& framework, double pass_s, double sequence_s) {
    FrameworkProfile profile{.framework = framework, .host = "reference"};
    profile.parameters = {{"host.forward", pass_s}, {"host.scale", 1.0, 0.2}, {"host.sequence", sequence_s}};
    return profile;
}

struct Run {
    const LanguageMeasurement* row;
    fit::ServingRow times;
    bool waits = false;
};

std::vector<Run> runs_of(const std::string& framework, const std::vector<LanguageMeasurement>& rows) {
    const auto generator = [&](double pass_s, double sequence_s) {
        return scenario::LanguagePredictor(
            {}, [=](const std::string& name) { return with_costs(framework_name(name), pass_s, sequence_s); });
    };
    constexpr double almost_none = 1e-12;
    auto device = generator(almost_none, almost_none);
    auto passes = generator(unit_s, almost_none);
    auto sequences = generator(almost_none, unit_s);
    std::vector<Run> runs;
    for (const LanguageMeasurement& row : rows) {
        if (framework_name(row.framework) != framework) continue;
        try {
            const Generation base = device.predict(row);
            runs.push_back({&row,
                            {.fixed_s = base.total_s,
                             .passes = (passes.predict(row).total_s - base.total_s) / unit_s,
                             .sequences = (sequences.predict(row).total_s - base.total_s) / unit_s,
                             .measured_s = row.latency_s},
                            base.waves > 1});
        } catch (const Error& error) {
            fmt::print(stderr, "left out: {} of {}: {}\n", row.model, framework, error.what());
        }
    }
    return runs;
}

/// Fits on the runs of other models than `left_out`. Runs that wait depend on the engine's way of evicting sequences:
/// they are scored and not fitted.
fit::ServingFit fit_without(const std::string& framework, const std::vector<Run>& runs,
                            const std::optional<std::string>& left_out, const std::string& source) {
    std::vector<fit::ServingRow> rows;
    for (const Run& run : runs) {
        if (!run.waits && (!left_out || run.row->model != *left_out)) rows.push_back(run.times);
    }
    return fit::fit_serving(framework, rows, fmt::format("{}, {} rows", source, rows.size()));
}

std::vector<double> errors(const std::vector<ScoredRun>& runs, const std::function<bool(const ScoredRun&)>& take) {
    std::vector<double> result;
    for (const ScoredRun& run : runs) {
        if (take(run)) result.push_back(std::abs(run.predicted_s / run.row.latency_s - 1));
    }
    return result;
}

std::string figures_line(std::string_view name, std::string_view which, const std::vector<double>& errors) {
    if (errors.empty()) return "";
    double sum = 0;
    for (const double error : errors) sum += error;
    return fmt::format("| {} | {} | {} | {:.1f} % | {:.1f} % | {:.1f} % |\n", name, which, errors.size(),
                       100 * sum / static_cast<double>(errors.size()), 100 * quantile(errors, 0.5),
                       100 * quantile(errors, 0.9));
}

}  // namespace

ServingScore score_serving(const std::vector<LanguageMeasurement>& rows, const std::string& source) {
    ServingScore score;
    for (const FrameworkModel* model : framework_models()) {
        if (!model->traits.serves_sequences) continue;
        const std::string framework(model->name);
        const std::vector<Run> runs = runs_of(framework, rows);
        if (runs.empty()) continue;
        std::set<std::string> names;
        for (const Run& run : runs) names.insert(run.row->model);
        std::vector<double> logs;
        for (const std::string& name : names) {
            const fit::ServingFit fitted = fit_without(framework, runs, name, source);
            for (const Run& run : runs) {
                if (run.row->model != name) continue;
                score.runs.push_back({*run.row, serving_s(run.times, fitted.profile), run.waits});
                logs.push_back(std::abs(std::log(score.runs.back().predicted_s / run.row->latency_s)));
            }
        }
        FrameworkProfile profile = fit_without(framework, runs, std::nullopt, source).profile;
        constexpr double unlike_hosts = 0.2;  // a guess: rows of one machine do not tell
        profile.parameters.push_back({"host.scale", 1, unlike_hosts, "of the machine that was measured"});
        const double spread = quantile(std::move(logs), 0.9) / 1.6449;
        for (const char* noise : {"noise.device", "noise.host"}) {
            profile.parameters.push_back({noise, spread, 0, fmt::format("{}, one model left out", source)});
        }
        score.profiles.push_back(std::move(profile));
    }
    return score;
}

std::string serving_markdown(const ServingScore& score) {
    std::string text =
        "# Errors of language models as they are served, the model left out\n\n"
        "Total time of a static batch: prompts, then all new tokens. Host costs are fitted on the other models; runs "
        "whose "
        "batch exceeds the memory are scored and not fitted.\n\n"
        "| framework | runs | rows | MAPE | median | 90 % |\n|---|---|---|---|---|---|\n";
    for (const FrameworkProfile& profile : score.profiles) {
        const auto own = [&](const ScoredRun& run) { return framework_name(run.row.framework) == profile.framework; };
        text += figures_line(profile.framework, "all", errors(score.runs, own));
        text += figures_line(profile.framework, "batch fits",
                             errors(score.runs, [&](const ScoredRun& run) { return own(run) && !run.waits; }));
        text += figures_line(profile.framework, "batch waits",
                             errors(score.runs, [&](const ScoredRun& run) { return own(run) && run.waits; }));
        std::set<std::string> models;
        for (const ScoredRun& run : score.runs) {
            if (own(run)) models.insert(run.row.model);
        }
        for (const std::string& model : models) {
            text += figures_line(profile.framework, model, errors(score.runs, [&](const ScoredRun& run) {
                                     return own(run) && run.row.model == model;
                                 }));
        }
    }
    text += "\n| framework | once per pass | once per sequence |\n|---|---|---|\n";
    for (const FrameworkProfile& profile : score.profiles) {
        text += fmt::format("| {} | {:.2f} ms | {:.0f} µs |\n", profile.framework, profile.parameters[0].value * 1e3,
                            profile.parameters[1].value * 1e6);
    }
    return text;
}

}  // namespace ftax::folds
