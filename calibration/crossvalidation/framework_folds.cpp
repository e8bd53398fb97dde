#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "calibration/crossvalidation/folds.hpp"
#include "ftax/anchor.hpp"
#include "ftax/device.hpp"
#include "ftax/equations.hpp"
#include "ftax/error.hpp"
#include "ftax/predict.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/statistics.hpp"
#include "graphs/files/csv.hpp"
#include "predictors/host/host_costs.hpp"
#include "src/scenario/row_predictor.hpp"
#include "src/scenario/usable_rows.hpp"

namespace ftax::folds {
namespace {

/// Family of a model: architectures whose operator streams resemble each other.
std::string family_of(const std::string& model) {
    static constexpr std::pair<std::string_view, std::string_view> families[] = {
        {"resnet", "resnet resnext wide_resnet gernet"},
        {"mobilenet", "mobilenet mnasnet efficientnet shufflenet"},
        {"bert", "bert distilbert funnel longformer squeeze_bert"},
        {"vit", "vit"}};
    for (const auto& [family, prefixes] : families)
        for (const std::string_view prefix : words_of(prefixes))
            if (model.starts_with(prefix)) return std::string(family);
    return model;
}

/// What is left out, and how the rows that are predicted are anchored: by the others of the same (framework, run, gpu),
/// or, where that was left out, by those of a card that are not scored.
struct LeaveOut {
    std::string_view title;
    std::string (*member)(const Measurement&);
    bool (*is_anchor)(const Measurement&) = nullptr;
};

constexpr LeaveOut ways[] = {
    {"leave one model out, anchored by the other models of the run", [](const Measurement& row) { return row.model; }},
    {"leave one family out, anchored by the other families of the run",
     [](const Measurement& row) { return family_of(row.model); }},
    {"leave one GPU out, anchored by resnet18 at batch 1", [](const Measurement& row) { return row.gpu; },
     [](const Measurement& row) { return row.batch == 1 && row.model == "resnet18"; }},
    {"leave one GPU out, anchored by batch 1 of each model", [](const Measurement& row) { return row.gpu; },
     [](const Measurement& row) { return row.batch == 1; }}};

/// A row with the prediction made without it.
struct Scored {
    const Measurement* row = nullptr;
    Prediction predicted;
};

/// Rows with what the predictor counts on the host and times on the device for each.
class Folds {
  public:
    /// Leaves out rows of unknown models, devices and frameworks, above the largest batch, and of unsound_run.
    explicit Folds(std::vector<Measurement> measured) {
        constexpr std::int64_t largest_batch = 128;
        for (Measurement& row : measured) {
            std::string why;
            if (row.batch > largest_batch) {
                why = fmt::format("batch above {}", largest_batch);
            } else if (row.gpu == unsound_gpu && row.framework == "pytorch-eager" && row.run == unsound_run) {
                why =
                    fmt::format("eager {} run {}, slowed 2 to 3 × by something else on the machine", row.gpu, row.run);
            } else {
                try {
                    const auto [predictor, bindings] = predictor_.bound(row);
                    host_rows_.push_back(fit::host_row(row, predictor, bindings));
                    rows.push_back(std::move(row));
                    continue;
                } catch (const Error& error) {
                    why = fmt::format("{}: {}", row.model, error.what());
                }
            }
            left_out[why].push_back(row.line);
        }
    }

    /// Fits every framework on all rows; the noise of host and device is that of rows predicted `unseen`.
    [[nodiscard]] std::vector<fit::FrameworkFit> fit_all(const std::vector<Scored>& unseen) const {
        std::map<std::pair<std::string, std::string>, std::vector<fit::HostRow>> by_stack;
        for (std::size_t i = 0; i < rows.size(); ++i)
            by_stack[{rows[i].framework, rows[i].version}].push_back(host_rows_[i]);
        std::vector<fit::FrameworkFit> fits;
        for (const auto& [stack, own] : by_stack) {
            const auto& [framework, version] = stack;
            fits.push_back(fit::fit_framework(framework, version, own));
            for (const bool host : {true, false}) {
                std::vector<double> errors;
                for (const auto& [row, p] : unseen) {
                    const double share = equations::decisive_share(p.host_s, p.device_s);
                    if (row->framework == framework && (host ? share : 1 - share) > 0.8)
                        errors.push_back(std::abs(std::log(p.latency_s / row->latency_s)));
                }
                if (errors.empty()) continue;
                fits.back().reference.parameters.push_back(
                    {host ? "noise.host" : "noise.device", quantile(errors, 0.9) / equations::normal_90, 0,
                     fmt::format("framework_tax.csv {}, one model left out, {} rows", framework, errors.size())});
            }
        }
        return fits;
    }

    /// Fits without each member of the class in turn and predicts its rows.
    [[nodiscard]] std::vector<Scored> score(const LeaveOut& leave_out) {
        std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> folds;  // (framework, member) → rows
        for (std::size_t i = 0; i < rows.size(); ++i)
            folds[{rows[i].framework, leave_out.member(rows[i])}].push_back(i);
        std::vector<Scored> scored;
        for (const auto& [fold, of_fold] : folds) {
            const auto& [framework, member] = fold;
            std::vector<fit::HostRow> seen;
            std::vector<Measurement> anchors;
            std::set<HostKey> known;
            for (std::size_t i = 0; i < rows.size(); ++i) {
                if (rows[i].framework != framework) continue;
                const bool own = leave_out.member(rows[i]) == member;
                if (!own) seen.push_back(host_rows_[i]);
                if (leave_out.is_anchor ? !own || !leave_out.is_anchor(rows[i]) : own) continue;
                anchors.push_back(rows[i]);
                known.insert(host_key(rows[i]));
            }
            if (anchors.empty()) continue;
            // A framework measured on this member only has no fit; its priors remain.
            FrameworkProfile profile{.framework = framework};
            if (!seen.empty()) profile = fit::fit_framework(framework, rows[of_fold.front()].version, seen).reference;
            // The noise of the last ledger widens intervals and moves no prediction.
            for (const Parameter& p : framework_profile(framework).parameters)
                if (p.name.starts_with("noise.")) set_parameter(profile.parameters, p);
            predictor_.set_costs(std::move(profile));
            static_cast<void>(predictor_.anchor(anchors));
            for (const std::size_t i : of_fold) {
                const Measurement& row = rows[i];
                if ((leave_out.is_anchor && leave_out.is_anchor(row)) || !known.contains(host_key(row))) continue;
                scored.push_back({&row, predictor_.predict(row)});
            }
        }
        return scored;
    }

    std::map<std::string, std::vector<std::size_t>>
        left_out;  ///< lines of the file that are not among the rows, by reason
    std::vector<Measurement> rows;

  private:
    std::vector<fit::HostRow> host_rows_;  ///< one per row
    scenario::RowPredictor predictor_;
};

/// Composes one profile per GPU of framework_tax.csv, the machine of the run with the median scale among those that
/// were measured with it: what `--host framework-tax-v100` names. Hosts differ by a factor of 2.
std::vector<FrameworkProfile> host_profiles(const fit::FrameworkFit& fitted) {
    using Run = std::pair<std::string, fit::FrameworkFit::Host>;
    std::map<std::string, std::vector<Run>> machines;
    for (const auto& [name, host] : fitted.hosts) {  // "framework|gpu|run"
        const std::size_t gpu = name.find('|') + 1;
        const std::size_t run = name.find('|', gpu) + 1;
        machines[name.substr(gpu, run - 1 - gpu)].emplace_back(name.substr(run), host);
    }
    const std::string_view call = second_scalar(model_of(fitted.reference));
    std::vector<FrameworkProfile> profiles;
    for (auto& [gpu, runs] : machines) {
        std::ranges::sort(runs, [](const Run& a, const Run& b) { return a.second.scale < b.second.scale; });
        const auto& [run, host] = runs[(runs.size() - 1) / 2];
        FrameworkProfile profile = anchored(
            fitted.reference,
            HostScalars{.scale = host.scale, .scale_relative_stddev = 0.05, .call_s = host.call_s, .call = call});
        profile.host = "framework-tax-" + device_spec(gpu).slug;
        for (Parameter& p : profile.parameters)
            if (p.name == "host.scale" || p.name == call)
                p.source = fmt::format("fitted: framework_tax.csv {}, run {}", fitted.reference.framework, run);
        profiles.push_back(std::move(profile));
    }
    return profiles;
}

}  // namespace

/// Hosts of frameworks: one model, family or GPU left out; a GPU is anchored by resnet18 at batch 1, or by batch 1 of
/// each model. Every scored row with its prediction; then the lines that the first fold does not score, and why.
std::string frameworks(Arguments a) {
    Folds folds(scenario::usable_rows(read_model_measurements(read_csv(a[0]))));
    std::string text =
        "fold,framework,precision,gpu,run,model,batch,line,measured_s,predicted_s,low_s,high_s,host_s,device_s,"
        "skipped\n";
    std::vector<Scored> first;
    for (const LeaveOut& way : ways) {
        const std::vector<Scored> scored = folds.score(way);
        for (const auto& [row, p] : scored)
            append_scored(text,
                          {std::string(way.title), row->framework, std::string(name_of(row->precision)), row->gpu,
                           row->run, row->model, std::to_string(row->batch), std::to_string(row->line)},
                          {row->latency_s, p.latency_s, p.low_s, p.high_s, p.host_s, p.device_s}, 1);
        if (&way == std::begin(ways)) first = scored;
    }
    auto unscored = folds.left_out;
    for (const auto& [reason, lines] : unscored) fmt::print(stderr, "left out, {} rows: {}\n", lines.size(), reason);
    std::set<std::size_t> scored;
    for (const Scored& s : first) scored.insert(s.row->line);
    for (const Measurement& row : folds.rows) {
        if (scored.contains(row.line)) continue;
        unscored["no other model of the run measures its host (line 7813 also says 0.3 ms where 65 would do)"]
            .push_back(row.line);
    }
    for (const auto& [reason, lines] : unscored) {
        for (const std::size_t line : lines) {
            std::vector<std::string> cells(15);
            cells[7] = std::to_string(line);
            cells[14] = reason;
            append_csv_row(text, cells);
        }
    }
    if (a.size() < 2) return text;
    for (fit::FrameworkFit fitted : folds.fit_all(first)) {
        print_fit(fitted);
        for (const FrameworkProfile& profile : host_profiles(fitted))
            write_profile(a[1], fmt::format("{}@{}", profile.framework, profile.host), profile);
        fitted.reference.reference_cpu = "Intel Xeon E5-2630 v4";  // of two of the machines, near the median
        write_profile(a[1], fitted.reference.framework, fitted.reference);
    }
    return text;
}

}  // namespace ftax::folds
