#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

#include "calibration/crossvalidation/folds.hpp"
#include "calibration/fit/framework_fit.hpp"
#include "ftax/equations.hpp"
#include "ftax/error.hpp"
#include "graphs/base/statistics.hpp"
#include "graphs/files/csv.hpp"
#include "graphs/files/number.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/host/host_costs.hpp"
#include "src/scenario/language_rows.hpp"
#include "src/scenario/usable_rows.hpp"

namespace ftax::folds {
namespace {

constexpr double unit_s = 1e-3;  // step in the host costs to determine a row's (linear) dependence on them

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
        FrameworkProfile profile{.framework = framework, .host = "reference"};
        profile.parameters = {{"host.forward", pass_s}, {"host.scale", 1.0, 0.2}, {"host.sequence", sequence_s}};
        return scenario::LanguagePredictor({.costs = profile});
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

/// Fits on the runs of other models than `left_out`. Runs that wait are scored, not fitted.
FrameworkProfile fit_without(const std::string& framework, const std::vector<Run>& runs,
                             const std::optional<std::string>& left_out, const std::string& source) {
    std::vector<fit::ServingRow> rows;
    for (const Run& run : runs)
        if (!run.waits && (!left_out || run.row->model != *left_out)) rows.push_back(run.times);
    return fit::fit_serving(framework, runs.front().row->version, rows,
                            fmt::format("{}, {} rows", source, rows.size()));
}

/// A fitted profile, with the spread between hosts and the residuals of held-out rows.
FrameworkProfile with_noise(FrameworkProfile profile, std::vector<double> left_out_logs, const std::string& source) {
    constexpr double unlike_hosts = 0.2;  // a guess: rows of one machine do not tell
    set_parameter(profile.parameters, {"host.scale", 1, unlike_hosts, "of the machine that was measured"});
    const double spread = quantile(std::move(left_out_logs), 0.9) / equations::normal_90;
    for (const char* noise : {"noise.device", "noise.host"})
        set_parameter(profile.parameters, {noise, spread, 0, fmt::format("{}, one model left out", source)});
    return profile;
}

const Run& cheapest(const std::vector<Run>& runs, const std::string& model) {
    const auto cost = [&](const Run& run) {
        return std::tuple(run.row->model != model, run.row->batch, run.row->prompt + run.row->new_tokens);
    };
    return *std::min_element(runs.begin(), runs.end(), [&](const Run& a, const Run& b) { return cost(a) < cost(b); });
}

/// Appends the runs of a model, predicted with its fold's profile, with one of them known where there is an `anchor`.
void append_runs(const std::vector<Run>& runs, const std::string& model, const FrameworkProfile& profile,
                 const LanguageMeasurement* anchor, std::string& text) {
    scenario::LanguagePredictor predictor({.costs = profile});
    if (anchor) predictor.anchor({*anchor});
    for (const Run& run : runs) {
        const LanguageMeasurement& row = *run.row;
        if (row.model != model || &row == anchor) continue;
        const Generation predicted = predictor.predict(as_run(row));
        append_scored(text,
                      {anchor ? "one run known" : "model left out", framework_name(row.framework), row.model,
                       std::to_string(row.prompt), std::to_string(row.new_tokens), std::to_string(row.batch),
                       std::to_string(row.line), run.waits ? "1" : "0"},
                      {row.latency_s, predicted.total_s, predicted.low_s, predicted.high_s}, 2);
    }
}

}  // namespace

/// Hosts of frameworks that serve language models: each model left out, then with one of its runs known; and in the
/// fold "costs" what was fitted on all rows for each framework: host_s of a pass, device_s of a sequence.
/// Rows of a framework at batch 1 only do not tell its two host costs apart: they are predicted with start values. Rows
/// of other frameworks and models are skipped. The known run is the one measured fastest: batch 1, the fewest tokens.
std::string serving(Arguments a) {
    const std::vector<LanguageMeasurement> rows = scenario::usable_rows(read_language_measurements(read_csv(a[0])));
    const std::string source = std::filesystem::path(a[0]).filename().string();
    std::string text =
        "fold,framework,model,prompt,new_tokens,batch,line,waits,measured_s,predicted_s,low_s,high_s,host_s,device_s\n";
    std::string anchored, costs;
    for (const FrameworkModel* model : framework_models()) {
        if (!model->traits.serves_sequences) continue;
        const std::string framework(model->name);
        const std::vector<Run> runs = runs_of(framework, rows);
        if (runs.empty()) continue;
        std::map<std::string, FrameworkProfile> folds;  // by the model left out
        for (const Run& run : runs) folds.try_emplace(run.row->model);
        if (std::all_of(runs.begin(), runs.end(), [](const Run& run) { return run.row->batch == 1; })) {
            for (const auto& [name, fold] : folds) append_runs(runs, name, framework_profile(*model), nullptr, text);
            continue;
        }
        std::map<std::string, std::vector<double>> logs;
        for (auto& [name, profile] : folds) {
            profile = fit_without(framework, runs, name, source);
            for (const Run& run : runs) {
                if (run.row->model != name) continue;
                logs[name].push_back(std::abs(std::log(serving_s(run.times, profile) / run.row->latency_s)));
            }
        }
        std::vector<double> all_logs;
        for (const auto& [name, fold] : folds) {
            std::vector<double> other_logs;
            for (const auto& [other, errors] : logs)
                if (other != name) other_logs.insert(other_logs.end(), errors.begin(), errors.end());
            if (other_logs.empty()) other_logs = logs[name];
            const FrameworkProfile profile = with_noise(fold, std::move(other_logs), source);
            append_runs(runs, name, profile, nullptr, text);
            append_runs(runs, name, profile, cheapest(runs, name).row, anchored);
            all_logs.insert(all_logs.end(), logs[name].begin(), logs[name].end());
        }
        const FrameworkProfile profile =
            with_noise(fit_without(framework, runs, std::nullopt, source), std::move(all_logs), source);
        if (a.size() > 1) write_profile(a[1], framework, profile);
        costs +=
            fmt::format("costs,{},,,,,,,,,,,{},{}\n", framework, format_number(host_parameter(profile, "host.forward")),
                        format_number(host_parameter(profile, "host.sequence")));
    }
    return text + anchored + costs;
}

}  // namespace ftax::folds
