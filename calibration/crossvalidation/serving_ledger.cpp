#include "calibration/crossvalidation/serving_ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>

#include "calibration/fit/serving_fit.hpp"
#include "ftax/error.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"
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

/// What a row's command ran. llm_static.csv's rows of llama.cpp are llama-bench's, whose -b is not a number of
/// sequences but of tokens that one pass takes in: at 1 it reads the prompt token by token. Source:
/// github.com/argonne-lcf/LLM-Inference-Bench, llama.cpp/A100/README.MD; llama.cpp, tools/llama-bench/README.md.
LanguageMeasurement as_run(LanguageMeasurement row) {
    if (row.batch == 1 && framework_name(row.framework) == "llama.cpp") {
        row.new_tokens += row.prompt;
        row.prompt = 1;
    }
    return row;
}

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
            const Generation base = device.predict(as_run(row));
            runs.push_back({&row,
                            {.fixed_s = base.total_s,
                             .passes = (passes.predict(as_run(row)).total_s - base.total_s) / unit_s,
                             .sequences = (sequences.predict(as_run(row)).total_s - base.total_s) / unit_s,
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

/// A profile as fitted, with the spread between hosts and what is left of rows that no fit has seen.
FrameworkProfile with_noise(FrameworkProfile profile, std::vector<double> left_out_logs, const std::string& source) {
    constexpr double unlike_hosts = 0.2;  // a guess: rows of one machine do not tell
    profile.parameters.push_back({"host.scale", 1, unlike_hosts, "of the machine that was measured"});
    const double spread = quantile(std::move(left_out_logs), 0.9) / 1.6449;
    for (const char* noise : {"noise.device", "noise.host"}) {
        profile.parameters.push_back({noise, spread, 0, fmt::format("{}, one model left out", source)});
    }
    std::sort(profile.parameters.begin(), profile.parameters.end(),
              [](const Parameter& a, const Parameter& b) { return a.name < b.name; });
    return profile;
}

/// The cheapest run of a model to measure.
const Run& cheapest(const std::vector<Run>& runs, const std::string& model) {
    const auto cost = [&](const Run& run) {
        return std::tuple(run.row->model != model, run.row->batch, run.row->prompt + run.row->new_tokens);
    };
    return *std::min_element(runs.begin(), runs.end(), [&](const Run& a, const Run& b) { return cost(a) < cost(b); });
}

/// Predicts the runs of a model with its fold's profile, with one of them known where there is an `anchor`.
void predict_runs(const std::vector<Run>& runs, const std::string& model, const FrameworkProfile& profile,
                  const LanguageMeasurement* anchor, std::vector<ScoredRun>& scored) {
    scenario::LanguagePredictor predictor({}, [&](const std::string&) { return profile; });
    if (anchor) predictor.anchor({*anchor});
    for (const Run& run : runs) {
        if (run.row->model != model || run.row == anchor) continue;
        const Generation predicted = predictor.predict(as_run(*run.row));
        scored.push_back({*run.row, predicted.total_s, predicted.low_s, predicted.high_s, run.waits});
    }
}

using Choice = std::function<bool(const ScoredRun&)>;

std::vector<double> errors(const std::vector<ScoredRun>& runs, const Choice& take) {
    std::vector<double> result;
    for (const ScoredRun& run : runs) {
        if (take(run)) result.push_back(std::abs(run.predicted_s / run.row.latency_s - 1));
    }
    return result;
}

std::string figures(const std::vector<double>& errors) {
    double sum = 0;
    for (const double error : errors) sum += error;
    return fmt::format("{} | {:.1f} % | {:.1f} % | {:.1f} %", errors.size(),
                       100 * sum / static_cast<double>(errors.size()), 100 * quantile(errors, 0.5),
                       100 * quantile(errors, 0.9));
}

std::string figures_line(std::string_view name, std::string_view which, const std::vector<double>& errors) {
    if (errors.empty()) return "";
    return fmt::format("| {} | {} | {} |\n", name, which, figures(errors));
}

/// Errors of the runs that `anchored` has too, and the share of them inside their intervals.
std::string interval_line(std::string_view framework, std::string_view known, const std::vector<ScoredRun>& runs,
                          const std::vector<ScoredRun>& anchored) {
    const auto take = [&](const ScoredRun& run) {
        return framework_name(run.row.framework) == framework &&
               std::any_of(anchored.begin(), anchored.end(),
                           [&](const ScoredRun& other) { return other.row.line == run.row.line; });
    };
    std::size_t all = 0, inside = 0;
    double width = 0;
    for (const ScoredRun& run : runs) {
        if (!take(run)) continue;
        ++all;
        if (run.low_s <= run.row.latency_s && run.row.latency_s <= run.high_s) ++inside;
        width += std::log(run.high_s / run.low_s) / 2;
    }
    if (all == 0) return "";
    return fmt::format("| {} | {} | {} | {:.0f} % | {:.0f} % |\n", framework, known, figures(errors(runs, take)),
                       100 * static_cast<double>(inside) / static_cast<double>(all),
                       100 * std::expm1(width / static_cast<double>(all)));
}

/// How well predicted tokens per second rank the runs of a model.
std::string ranking_line(const std::string& model, const std::vector<ScoredRun>& runs) {
    std::vector<const ScoredRun*> own;
    std::vector<double> measured, predicted;
    for (const ScoredRun& run : runs) {
        if (run.row.model != model) continue;
        const auto tokens = static_cast<double>(run.row.batch * run.row.new_tokens);
        own.push_back(&run);
        measured.push_back(tokens / run.row.latency_s);
        predicted.push_back(tokens / run.predicted_s);
    }
    const auto same_work = [&](std::size_t i, std::size_t j) {
        const LanguageMeasurement &a = own[i]->row, &b = own[j]->row;
        return std::tie(a.prompt, a.new_tokens, a.batch) == std::tie(b.prompt, b.new_tokens, b.batch);
    };
    return fmt::format("| {} | {} | {:.3f} | {:.3f} |\n", model, own.size(),
                       kendall_tau(measured, predicted, [](std::size_t, std::size_t) { return true; }),
                       kendall_tau(measured, predicted, same_work));
}

}  // namespace

ServingScore score_serving(const std::vector<LanguageMeasurement>& rows, const std::string& source) {
    ServingScore score;
    for (const FrameworkModel* model : framework_models()) {
        if (!model->traits.serves_sequences) continue;
        const std::string framework(model->name);
        const std::vector<Run> runs = runs_of(framework, rows);
        if (runs.empty()) continue;
        std::map<std::string, FrameworkProfile> folds;  // by the model left out
        for (const Run& run : runs) folds.try_emplace(run.row->model);
        if (std::all_of(runs.begin(), runs.end(), [](const Run& run) { return run.row->batch == 1; })) {
            for (const auto& [name, fold] : folds)
                predict_runs(runs, name, framework_profile(*model), nullptr, score.runs);
            score.unfitted.push_back(framework);
            continue;
        }
        std::map<std::string, std::vector<double>> logs;
        for (auto& [name, profile] : folds) {
            profile = fit_without(framework, runs, name, source).profile;
            for (const Run& run : runs) {
                if (run.row->model != name) continue;
                logs[name].push_back(std::abs(std::log(serving_s(run.times, profile) / run.row->latency_s)));
            }
        }
        std::vector<double> all_logs;
        for (const auto& [name, fold] : folds) {
            std::vector<double> other_logs;
            for (const auto& [other, errors] : logs) {
                if (other != name) other_logs.insert(other_logs.end(), errors.begin(), errors.end());
            }
            if (other_logs.empty()) other_logs = logs[name];
            const FrameworkProfile profile = with_noise(fold, std::move(other_logs), source);
            predict_runs(runs, name, profile, nullptr, score.runs);
            predict_runs(runs, name, profile, cheapest(runs, name).row, score.anchored);
            all_logs.insert(all_logs.end(), logs[name].begin(), logs[name].end());
        }
        score.profiles.push_back(
            with_noise(fit_without(framework, runs, std::nullopt, source).profile, std::move(all_logs), source));
    }
    return score;
}

std::string serving_markdown(const ServingScore& score) {
    std::string text =
        "# Errors of language models as they are served, the model left out\n\n"
        "Total time of a static batch: prompts, then all new tokens. Host costs are fitted on the other models; runs "
        "whose batch exceeds the memory are scored and not fitted. At batch 1 nearly all of it is the time per token. "
        "llama.cpp has runs of batch 1 only and is predicted with start values, two of which were chosen with these "
        "and published runs in view.\n\n"
        "| framework | runs | rows | MAPE | median | 90 % |\n|---|---|---|---|---|---|\n";
    std::vector<std::string> frameworks;
    for (const FrameworkProfile& profile : score.profiles) frameworks.push_back(profile.framework);
    frameworks.insert(frameworks.end(), score.unfitted.begin(), score.unfitted.end());
    for (const std::string& framework : frameworks) {
        const auto own = [&](const ScoredRun& run) { return framework_name(run.row.framework) == framework; };
        text += figures_line(framework, "all", errors(score.runs, own));
        text += figures_line(framework, "batch 1",
                             errors(score.runs, [&](const ScoredRun& run) { return own(run) && run.row.batch == 1; }));
        text += figures_line(framework, "batch fits",
                             errors(score.runs, [&](const ScoredRun& run) { return own(run) && !run.waits; }));
        text += figures_line(framework, "batch waits",
                             errors(score.runs, [&](const ScoredRun& run) { return own(run) && run.waits; }));
        std::set<std::string> models;
        for (const ScoredRun& run : score.runs) {
            if (own(run)) models.insert(run.row.model);
        }
        for (const std::string& model : models) {
            text += figures_line(framework, model, errors(score.runs, [&](const ScoredRun& run) {
                                     return own(run) && run.row.model == model;
                                 }));
        }
    }
    text +=
        "\nWithout a run of the model, and with one as `--anchor`: batch 1, the fewest tokens. The interval of a model "
        "takes its noise from the other models. The rows have total times only, so prompts and tokens are not told "
        "apart.\n\n"
        "| framework | known of the model | rows | MAPE | median | 90 % | inside the 90 % interval | half its width |\n"
        "|---|---|---|---|---|---|---|---|\n";
    for (const FrameworkProfile& profile : score.profiles) {
        text += interval_line(profile.framework, "nothing", score.runs, score.anchored);
        text += interval_line(profile.framework, "one run", score.anchored, score.anchored);
    }
    text +=
        "\nRanking of the runs of one model by tokens per second (Kendall's τ): of all, and of frameworks that do the "
        "same work.\n\n| model | runs | all | frameworks |\n|---|---|---|---|\n";
    std::set<std::string> models;
    for (const ScoredRun& run : score.runs) models.insert(run.row.model);
    for (const std::string& model : models) text += ranking_line(model, score.runs);
    text += "\n| framework | once per pass | once per sequence |\n|---|---|---|\n";
    for (const FrameworkProfile& profile : score.profiles) {
        text +=
            fmt::format("| {} | {:.2f} ms | {:.0f} µs |\n", profile.framework,
                        host_parameter(profile, "host.forward") * 1e3, host_parameter(profile, "host.sequence") * 1e6);
    }
    return text;
}

}  // namespace ftax::folds
