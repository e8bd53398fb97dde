#include "calibration/crossvalidation/folds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "ftax/anchor.hpp"
#include "ftax/device.hpp"
#include "ftax/equations.hpp"
#include "ftax/error.hpp"
#include "ftax/import.hpp"
#include "predictors/host/host_costs.hpp"
#include "src/core/excerpt.hpp"
#include "src/core/statistics.hpp"
#include "src/io/csv.hpp"
#include "src/io/number.hpp"

namespace ftax::folds {
namespace {

/// Family of a model: architectures whose operator streams resemble each other.
std::string family_of(const std::string& model) {
    static constexpr std::pair<std::string_view, std::string_view> families[] = {
        {"resnet", "resnet resnext wide_resnet gernet"},
        {"mobilenet", "mobilenet mnasnet efficientnet shufflenet"},
        {"bert", "bert distilbert funnel longformer squeeze_bert"},
        {"vit", "vit"}};
    for (const auto& [family, prefixes] : families) {
        for (const std::string_view prefix : words_of(prefixes)) {
            if (model.starts_with(prefix)) return std::string(family);
        }
    }
    return model;
}

bool is_unsound(const Measurement& row) {
    return row.gpu == unsound_gpu && row.framework == "pytorch-eager" && row.run == unsound_run;
}

/// Version of each framework in the campaigns, of 2022 with PyTorch 1.12 and CUDA 11.6.
/// Source: github.com/JaredFern/Framework-Tax.
std::string version_of(const std::string& framework) {
    return framework == "torch-tensorrt" ? "1.2" : "1.12";  // so was that of ONNX Runtime
}

ShapeBindings bindings_of(const Graph& graph, const Measurement& row) {
    ShapeBindings bindings;
    for (const std::string& symbol : graph.expressions.symbols()) {
        if (symbol == "batch") bindings["batch"] = row.batch;
        if (symbol == "seq") bindings["seq"] = row.input.value_or(128);
    }
    return bindings;
}

std::string member_of(const Measurement& row, LeaveOut leave_out) {
    switch (leave_out) {
        case LeaveOut::model:
            return row.model;
        case LeaveOut::family:
            return family_of(row.model);
        case LeaveOut::gpu:
        case LeaveOut::gpu_but_batch_1:
            return row.gpu;
    }
    return {};
}

/// The anchor of a counted row under fitted shared costs: the same sum as predictors/host/host_costs.hpp.
AnchorRow anchor_of(const fit::HostRow& row, const FrameworkProfile& unit, Precision precision, std::string_view call) {
    const HostCosts costs = host_costs(unit, precision);
    AnchorRow anchor{.measured_s = row.measured_s,
                     .calls = row.calls,
                     .device_s = row.device_s,
                     .model = row.model,
                     .label = fmt::format("{}, {}, batch {}", row.host, row.model, row.batch),
                     .host = row.host,
                     .class_s = row.class_s};
    for (int kind = 0; kind < host_kind_count; ++kind) anchor.host_s += row.operations[kind] * costs.seconds[kind];
    anchor.forward_s = costs[HostKind::forward];
    anchor.call = call;
    anchor.host_log_stddev = host_parameter(unit, "noise.host");
    anchor.device_log_stddev = host_parameter(unit, "noise.device");
    return anchor;
}

/// Do anchors stand for the row, so that it is not scored?
bool is_anchor(const Measurement& row, LeaveOut leave_out) {
    switch (leave_out) {
        case LeaveOut::gpu:
            return row.batch == 1 && row.model == "resnet18";
        case LeaveOut::gpu_but_batch_1:
            return row.batch == 1;
        default:
            return false;
    }
}

/// The noise of the last ledger: it widens intervals and moves no prediction.
void copy_noise(const FrameworkProfile& from, FrameworkProfile& to) {
    for (const Parameter& p : from.parameters) {
        if (p.name.starts_with("noise.")) to.parameters.push_back(p);
    }
    std::sort(to.parameters.begin(), to.parameters.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

}  // namespace

Folds::Folds(std::vector<Measurement> rows, std::int64_t largest_batch) {
    std::map<std::tuple<std::string, std::string, Precision, std::string>, std::optional<Predictor>> predictors;
    for (Measurement& row : rows) {
        if (row.batch > largest_batch) {
            left_out_[fmt::format("batch above {}", largest_batch)].push_back(row.line);
            continue;
        }
        if (is_unsound(row)) {
            left_out_[fmt::format("eager {} run {}, slowed 2 to 3 × by something else on the machine", unsound_gpu,
                                  unsound_run)]
                .push_back(row.line);
            continue;
        }
        try {
            auto& graph = graphs_[row.model];
            if (!graph) graph = std::make_unique<Graph>(load_graph(row.model));
            auto& loaded = predictors[{row.framework, row.gpu, row.precision, row.model}];
            if (!loaded) loaded.emplace(predictor(row, FrameworkProfile{.framework = row.framework}));
            host_rows_.push_back(fit::host_row(row, *loaded, bindings_of(*graph, row)));
            rows_.push_back(std::move(row));
        } catch (const Error& error) {
            left_out_[fmt::format("{}: {}", row.model, error.what())].push_back(row.line);
        }
    }
}

Predictor Folds::predictor(const Measurement& row, FrameworkProfile profile) const {
    return {*graphs_.at(row.model), device_profile(row.gpu), std::move(profile), {.precision = row.precision}};
}

std::vector<fit::FrameworkFit> Folds::fit_all(const std::vector<Scored>& left_out) const {
    std::map<std::string, std::vector<fit::HostRow>> by_framework;
    for (std::size_t i = 0; i < rows_.size(); ++i) by_framework[rows_[i].framework].push_back(host_rows_[i]);
    std::vector<fit::FrameworkFit> fits;
    for (const auto& [framework, own] : by_framework) {
        fits.push_back(fit::fit_framework(framework, version_of(framework), own));
        for (const bool host : {true, false}) {
            std::vector<double> errors;
            for (const Scored& s : left_out) {
                const double share = equations::decisive_share(s.host_s, s.device_s);
                if (s.row->framework == framework && (host ? share : 1 - share) > 0.8) {
                    errors.push_back(std::abs(std::log(s.predicted_s / s.row->latency_s)));
                }
            }
            if (errors.empty()) continue;
            fits.back().reference.parameters.push_back(
                {host ? "noise.host" : "noise.device", quantile(errors, 0.9) / equations::normal_90, 0,
                 fmt::format("framework_tax.csv {}, one model left out, {} rows", framework, errors.size())});
        }
    }
    return fits;
}

std::vector<Scored> Folds::score(LeaveOut leave_out) const {
    std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> folds;  // (framework, member) → rows
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        folds[{rows_[i].framework, member_of(rows_[i], leave_out)}].push_back(i);
    }
    std::vector<Scored> scored;
    for (const auto& [fold, left_out] : folds) {
        const auto& [framework, member] = fold;
        std::vector<fit::HostRow> seen;
        std::map<std::string, std::vector<std::size_t>> anchors;  // by card
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (rows_[i].framework != framework) continue;
            const bool own = member_of(rows_[i], leave_out) == member;
            if (!own) seen.push_back(host_rows_[i]);
            const bool of_other_members = leave_out == LeaveOut::model || leave_out == LeaveOut::family;
            if (of_other_members ? !own : own && is_anchor(rows_[i], leave_out)) anchors[rows_[i].gpu].push_back(i);
        }
        // A framework measured on this member only has no fit; its priors remain.
        FrameworkProfile profile{.framework = framework};
        if (!seen.empty()) profile = fit::fit_framework(framework, version_of(framework), seen).reference;
        copy_noise(framework_profile(framework), profile);

        const std::string_view call = second_scalar(model_of(profile));
        const FrameworkProfile unit = anchored(profile, HostScalars{.call = call});
        std::map<std::string, std::vector<AnchorRow>> anchor_rows;  // by card
        for (const auto& [gpu, own] : anchors) {
            for (const std::size_t i : own) {
                anchor_rows[gpu].push_back(anchor_of(host_rows_[i], unit, rows_[i].precision, call));
            }
        }
        std::map<std::pair<std::string, std::string>, Conditioned> cards;  // (card, model among the anchors)
        std::map<std::tuple<HostKey, Precision, std::string>, std::optional<Predictor>> predictors;
        for (const std::size_t i : left_out) {
            const Measurement& row = rows_[i];
            if (is_anchor(row, leave_out) || !anchor_rows.contains(row.gpu)) continue;
            const std::string known_model = leave_out == LeaveOut::gpu_but_batch_1 ? row.model : std::string();
            auto card = cards.find({row.gpu, known_model});
            if (card == cards.end()) {
                const DeviceFactors prior = device_profile(row.gpu).factors;
                Conditioned known = condition(anchor_rows.at(row.gpu), prior, known_model);
                card = cards.emplace(std::pair{row.gpu, known_model}, std::move(known)).first;
            }
            const auto host = card->second.hosts.find(host_rows_[i].host);
            if (host == card->second.hosts.end()) continue;
            auto& own = predictors[{host_key(row), row.precision, row.model}];
            if (!own) {
                DeviceProfile device = device_profile(row.gpu);
                device.factors = card->second.device;
                own.emplace(*graphs_.at(row.model), std::move(device), anchored(profile, host->second),
                            PredictOptions{.precision = row.precision});
            }
            const Prediction p = own->predict(bindings_of(*graphs_.at(row.model), row));
            scored.push_back({&row, p.latency_s, p.low_s, p.high_s, p.host_s, p.device_s});
        }
    }
    return scored;
}

std::vector<Section> score(const Folds& folds) {
    return {
        {"leave one model out, anchored by the other models of the run", folds.score(LeaveOut::model)},
        {"leave one family out, anchored by the other families of the run", folds.score(LeaveOut::family)},
        {"leave one GPU out, anchored by resnet18 at batch 1", folds.score(LeaveOut::gpu)},
        {"leave one GPU out, anchored by batch 1 of each model", folds.score(LeaveOut::gpu_but_batch_1)},
    };
}

std::string scored_csv(const std::vector<Section>& sections, const Folds& folds) {
    std::string text =
        "fold,framework,precision,gpu,run,model,batch,line,measured_s,predicted_s,low_s,high_s,host_s,device_s,"
        "skipped\n";
    for (const Section& section : sections) {
        for (const Scored& s : section.rows) {
            std::vector<std::string> cells{
                section.title, s.row->framework, std::string(name_of(s.row->precision)), s.row->gpu,
                s.row->run,    s.row->model,     std::to_string(s.row->batch),           std::to_string(s.row->line)};
            for (const double seconds : {s.row->latency_s, s.predicted_s, s.low_s, s.high_s, s.host_s, s.device_s})
                cells.push_back(format_number(seconds));
            cells.emplace_back();
            append_csv_row(text, cells);
        }
    }
    LinesByReason unscored = folds.left_out();
    std::set<std::size_t> scored;
    for (const Scored& s : sections.front().rows) scored.insert(s.row->line);
    for (const Measurement& row : folds.rows()) {
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
    return text;
}

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
        std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.second.scale < b.second.scale; });
        const auto& [run, host] = runs[(runs.size() - 1) / 2];
        FrameworkProfile profile = anchored(
            fitted.reference,
            HostScalars{.scale = host.scale, .scale_relative_stddev = 0.05, .call_s = host.call_s, .call = call});
        profile.host = "framework-tax-" + device_spec(gpu).slug;
        for (Parameter& p : profile.parameters) {
            if (p.name == "host.scale" || p.name == call) {
                p.source = fmt::format("fitted: framework_tax.csv {}, run {}", fitted.reference.framework, run);
            }
        }
        profiles.push_back(std::move(profile));
    }
    return profiles;
}

std::string figures_csv(std::span<const Figures> figures, bool has_header) {
    std::string text = has_header ? "fold,class,region,gpu,rows,mape,median,p90,bias\n" : "";
    for (const Figures& f : figures) {
        const fit::ErrorSummary& e = f.of_gpu;
        append_csv_row(text, std::vector<std::string>{f.fold, f.op_class, f.region, e.group, std::to_string(e.rows),
                                                      format_number(e.mean), format_number(e.median),
                                                      format_number(e.p90), format_number(e.bias)});
    }
    return text;
}

}  // namespace ftax::folds
