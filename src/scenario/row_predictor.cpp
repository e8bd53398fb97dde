#include "src/scenario/row_predictor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "calibration/bench/bench_device.hpp"
#include "ftax/import.hpp"
#include "ftax/version.hpp"
#include "graphs/base/excerpt.hpp"
#include "graphs/base/mapped.hpp"
#include "graphs/base/throw_error.hpp"
#include "predictors/frameworks/framework_model.hpp"
#include "predictors/kernels/all_reduce.hpp"
#include "predictors/profiles/parameters.hpp"
#include "src/scenario/alternatives.hpp"
#include "src/scenario/cpu.hpp"
#include "src/scenario/usable_rows.hpp"

namespace ftax::scenario {
namespace {

/// Returns values of the graph's symbols: the batch, and for all others the row's sequence length or image side, else
/// `dims`. Throws Error{usage} if the model is fixed at another size or a value is missing.
ShapeBindings bindings_for(const Graph& graph, const Measurement& row, const ShapeBindings& dims) {
    const std::optional<std::int64_t> size = row.seq ? row.seq : row.input;
    ShapeBindings bindings;
    for (const std::string& symbol : graph.expressions.symbols()) {
        if (symbol == "batch") {
            bindings[symbol] = row.batch;
            continue;
        }
        if (const auto given = dims.find(symbol); !size && given != dims.end()) {
            bindings[symbol] = given->second;
            continue;
        }
        if (!size) throw_error(ErrorCode::usage, "{} needs a value for {}: no column input or seq", row.model, symbol);
        bindings[symbol] = symbol == "height" ? row.height.value_or(*size) : *size;
    }
    if (graph.inputs.empty()) return bindings;
    const std::vector<Expression>& shape = graph.tensors[graph.inputs[0]].shape;
    const auto fixed = fixed_batch(graph);
    if (fixed && *fixed != row.batch) throw_error(ErrorCode::usage, "{} is fixed at batch {}", row.model, *fixed);
    for (const auto& [from_end, given] : {std::pair(std::size_t{1}, size), std::pair(std::size_t{2}, row.height)}) {
        const bool fixed_size = bindings.size() == bindings.count("batch");
        if (!fixed_size || !given || shape.size() < from_end) continue;
        if (const auto side = graph.expressions.constant_value(*(shape.end() - from_end)); side && *side != *given)
            throw_error(ErrorCode::usage, "{} is fixed at input {}, not {}", row.model, *side, *given);
    }
    return bindings;
}

PredictOptions options_for(const Measurement& row) {
    // `ftax measure` and the campaign wait for the device after each run, and so do MLPerf's single and multiple
    // streams (LoadGen issues a query after the previous one has completed); other files do not state it. The queries
    // of boards on PCIe start in pinned memory, those of modules on the device. Source:
    // mlcommons/inference_results_v2.1, closed/NVIDIA/configs/resnet50 (start_from_device).
    const bool mlperf = row.run.starts_with("MLPerf ");
    constexpr std::int64_t most_streams = 8;
    const bool from_host = mlperf && row.framework == "tensorrt-cuda-graph" && row.batch <= most_streams &&
                           device_spec(row.gpu).peer_bandwidth_bytes_per_s &&
                           kernels::link_of(device_spec(row.gpu)).kind != kernels::LinkKind::nvlink;
    // Source: optimum-benchmark, examples/fast-mteb (use_io_binding: false). Its CUDA rows ran fused graphs (O4).
    const bool unbound = row.framework == "onnxruntime-tensorrt" && row.run.starts_with("optimum ");
    return {.channels_last = row.layout == "nhwc",
            .synchronized = row.mode == bench::name_of(bench::Mode::end_to_end) || mlperf,
            .copies = row.copies || from_host || unbound};
}

/// Kinds of rows that are a part of the latency of a call.
constexpr std::string_view kernels_alone = "gpu", from_enqueue = "enqueue";

/// Normalises the framework: torch.compile is an option of the row in some files, but a separate framework here.
Measurement with_own_framework(Measurement row) {
    row.framework = framework_name(row.framework);
    if (row.option == "fusion" && row.framework == "pytorch-eager") row.framework = "torch-compile";
    // TensorRT rows with a lower version refer to the PyTorch or ONNX Runtime that exported the model: engines of 8.5.
    constexpr int oldest_tensorrt = 700;
    const bool engine = row.framework == "tensorrt" || row.framework == "tensorrt-onnx";
    if (engine && !row.version.empty() && version_number(row.version).value_or(0) < oldest_tensorrt) {
        // FasterTransformer's plugins multiply in f32, not in TF32 (docs/vit_guide.md).
        if (row.run != "fastertransformer" || row.precision != Precision::fp32) row.framework = "tensorrt-onnx";
        row.version = "8.5";
    }
    // kernl ran f32 models under one autocast context around all runs (test/test_torchdynamo_bert.py,
    // experimental/benchmarks/inductor.py); its engines keep norms in f32 (experimental/benchmarks/tensorrt_.py).
    if (row.run == "kernl" && row.framework != "onnxruntime-cuda") row.precision = Precision::amp_cached;
    // demo/BERT's perf and MLPerf's harness launch CUDA graphs; super-gradients prints trtexec's GPU compute time.
    if (row.framework == "tensorrt" && (row.run.starts_with("TensorRT demo/BERT") || row.run.starts_with("MLPerf ")))
        row.framework = "tensorrt-cuda-graph";
    if (row.run == "super-gradients" && row.mode.empty() && !row.copies) row.mode = kernels_alone;
    return row;
}

/// Takes out of a profile what a row's time does not contain: trtexec's GPU compute time has neither enqueue nor its
/// delays, its enqueue and compute time no call from Python.
FrameworkProfile timed_part(FrameworkProfile profile, std::string_view mode) {
    if (mode != kernels_alone && mode != from_enqueue) return profile;
    const auto leave_out = [&](const std::string& name) {
        set_parameter(profile.parameters, {.name = name, .value = 1e-9, .source = "not timed"});
    };
    leave_out("host.forward");
    if (mode == from_enqueue) return profile;
    for (int i = 0; i < host_kind_count; ++i) leave_out(fmt::format("host.{}", name_of(static_cast<HostKind>(i))));
    leave_out("launch_latency_s");
    profile.host = "none";  // a module's gap between kernels is its CPU's
    return profile;
}

/// Returns true for host-only or device-only times. Only end-to-end rows of `ftax measure model` are predicted.
bool is_part_of_latency(std::string_view mode) {
    return mode == bench::name_of(bench::Mode::device_hot) || mode == bench::name_of(bench::Mode::host_dispatch);
}

/// Era of KernelBench's exported networks; earlier rows have other shapes under the same names.
constexpr std::string_view exported_era = "2025";

/// A module with power modes is another card in each run.
std::pair<std::string, std::string> card_in_run(const std::string& gpu, const std::string& run) {
    const DeviceSpec device = device_spec(gpu);
    return {device.slug, device.least_power_w ? run : std::string()};
}

std::string host_name(const std::string& framework, const std::string& run) {
    return run.empty() ? framework : fmt::format("{}, run {}", framework, run);
}

/// Returns the profile for a run's machine, from its own rows, those without a run, or those of other frameworks.
FrameworkProfile anchored_as(FrameworkProfile profile, const Conditioned& known, const std::string& framework,
                             const std::string& run) {
    const std::vector<std::string> runs{run, ""};
    for (const std::string& of : runs)
        if (const auto host = known.hosts.find(host_name(framework, of)); host != known.hosts.end())
            return anchored(std::move(profile), host->second);
    for (const std::string& of : runs)
        if (const auto cpu = known.cpus.find(of); cpu != known.cpus.end())
            return anchored(std::move(profile), cpu->second);
    return profile;
}

/// Conditions the host and card of a row's scenario, and takes out what its time does not contain.
void fit_to_row(Scenario& scenario, const Measurement& row, const Conditioned* known) {
    FrameworkProfile& host = scenario.framework;
    if (known && host.framework == row.framework) host = anchored_as(std::move(host), *known, row.framework, row.run);
    if (known) scenario.device.factors = known->device;
    host = timed_part(std::move(host), row.mode);
}

}  // namespace

const Graph& RowPredictor::graph(const std::string& model) {
    return kept_in(graphs_, model,
                   [&] { return ftax::load_graph(locate_model(run_.models, model), {.vary_batch = true}); });
}

ShapeBindings RowPredictor::bindings_of(const Measurement& row) {
    return bindings_for(graph(row.model), row, dims_);
}

Predictor& RowPredictor::predictor(const Measurement& row) {
    const PredictOptions options = options_for(row);
    const Key key{row.model,     host_key(row),         row.version,          row.cpu,
                  row.precision, options.channels_last, options.synchronized, options.copies,
                  row.mode};
    return kept_in(predictors_, key,
                   [&] { return build(row, conditioned(device_spec(row.gpu).slug, row.run, row.model)); });
}

RunArguments run_of_row(const RunArguments& run, const std::string& gpu, const std::string& framework,
                        const std::string& version) {
    RunArguments own{.device = gpu, .framework = versioned(framework, version), .device_profile = run.device_profile};
    own.cpu = run.cpu;
    own.host_load = run.host_load;
    own.host_file = run.host_file;
    if (unversioned(run.costs ? run.costs->framework : run.framework) != framework_name(framework)) return own;
    own.host = run.host;
    own.framework_profile = run.framework_profile;
    own.costs = run.costs;
    return own;
}

RunArguments RowPredictor::arguments_of(const Measurement& row) const {
    RunArguments run = run_of_row(run_, row.gpu, row.framework, row.version);
    run.options = options_for(row);
    if (find_cpu(row.cpu)) {
        run.cpu = row.cpu;
        run.host_file.clear();  // which is of rows that do not name theirs
    }
    run.precision = name_of(row.precision);
    return run;
}

Predictor RowPredictor::build(const Measurement& row, const Conditioned* known) {
    Scenario scenario = resolve(arguments_of(row), row.precision);
    fit_to_row(scenario, row, known);
    return {graph(row.model), std::move(scenario.device), std::move(scenario.framework), scenario.options};
}

Measurement RowPredictor::predictable(const Measurement& measured) {
    Measurement row = with_own_framework(measured);
    row.gpu = device_spec(row.gpu).slug;
    if (!row.era.empty() && row.era != exported_era)
        throw_error(ErrorCode::usage, "era {}: its networks have other shapes than those of era {}", row.era,
                    exported_era);
    if (row.mode == "train") throw Error(ErrorCode::usage, "training is not modelled");
    if (is_part_of_latency(row.mode))
        throw_error(ErrorCode::usage, "{} is a part of the latency; rows of end_to_end are predicted", row.mode);
    return row;
}

Prediction RowPredictor::predict(const Measurement& measured) {
    const Measurement row = predictable(measured);
    const ShapeBindings bindings = bindings_of(row);
    const Card card = card_of(row.gpu, row.run);
    const auto anchors = anchors_.find(card);
    if (anchors != anchors_.end() && anchors->second.size() <= most_left_out) {
        for (const Anchor& anchor : anchors->second) {
            if (!is_same_run(anchor.measured, measured)) continue;
            const auto others = conditioned_on(card, row.model, &anchor);
            return build(row, others ? &*others : nullptr).predict(bindings);
        }
    }
    return predictor(row).predict(bindings);
}

std::vector<std::optional<Prediction>> RowPredictor::predict_changed(std::span<const Measurement> rows,
                                                                     const Change& change) {
    std::map<const Predictor*, std::optional<Alternative>> changed;  // by the predictor of the row as it is
    std::vector<std::optional<Prediction>> predictions(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Measurement row = predictable(rows[i]);
        const auto [found, added] = changed.try_emplace(&predictor(row));
        std::optional<Alternative>& own = found->second;
        const Conditioned* const known = conditioned(row.gpu, row.run, row.model);
        const auto prepare = [&](Scenario& scenario) { fit_to_row(scenario, row, known); };
        if (added) own = alternative(graph(row.model), {.model = row.model}, arguments_of(row), change, prepare);
        if (own) predictions[i] = own->predictor.predict(bindings_of(row));
    }
    return predictions;
}

std::vector<CountedKernel> RowPredictor::kernels(const Measurement& measured) {
    const Measurement row = with_own_framework(measured);
    const Scenario scenario = resolve(arguments_of(row), row.precision);
    const DeviceSpec& device = scenario.device.device;
    const FrameworkModel& framework = model_of(scenario.framework);
    const std::optional<Graph> optimised = optimised_graph(graph(row.model), framework, device, scenario.options);
    const Graph& source = optimised ? *optimised : graph(row.model);
    const Schedule schedule = lower(source, device, scenario.options, framework.traits);
    return list_kernels(source, schedule, ftax::bind(source, bindings_for(source, row, dims_)));
}

std::pair<Predictor&, ShapeBindings> RowPredictor::bound(const Measurement& measured) {
    const Measurement row = predictable(measured);
    return {predictor(row), bindings_of(row)};
}

void RowPredictor::set_costs(FrameworkProfile costs) {
    run_.costs = std::move(costs);
    anchors_.clear();
    conditioned_.clear();
    predictors_.clear();
}

std::set<report::UsedProfile> RowPredictor::profiles() const {
    std::set<report::UsedProfile> result;
    for (const auto& [key, predictor] : predictors_) add_used(result, predictor.device(), predictor.framework());
    return result;
}

AnchorRow RowPredictor::anchor_row_of(const Measurement& measured) {
    const Measurement row = predictable(measured);
    const ShapeBindings bindings = bindings_of(row);
    AnchorRow anchor = anchor_row(row, predictor(row), bindings);
    anchor.host = host_name(row.framework, row.run);
    anchor.machine = row.run;
    return anchor;
}

RowPredictor::Card RowPredictor::card_of(const std::string& device_slug, const std::string& run) const {
    Card card = card_in_run(device_slug, run);
    if (!anchors_.contains(card)) card.second.clear();
    return card;
}

const Conditioned* RowPredictor::conditioned(const std::string& device_slug, const std::string& run,
                                             const std::string& model) {
    const Card card = card_of(device_slug, run);
    const auto rows = anchors_.find(card);
    if (rows == anchors_.end()) return nullptr;
    const bool is_anchored =
        std::ranges::any_of(rows->second, [&](const Anchor& anchor) { return anchor.row.model == model; });
    const std::pair key{card, is_anchored ? model : std::string()};
    return &kept_in(conditioned_, key, [&] { return *conditioned_on(card, key.second, nullptr); });
}

std::optional<Conditioned> RowPredictor::conditioned_on(const Card& card, const std::string& model,
                                                        const Anchor* left_out) {
    std::vector<AnchorRow> rows;
    for (const Anchor& anchor : anchors_.at(card))
        if (&anchor != left_out) rows.push_back(anchor.row);
    if (rows.empty()) return std::nullopt;
    return condition(rows, device_profile(card.first, run_.device_profile).factors, model);
}

std::vector<std::string> RowPredictor::anchor(std::span<const Measurement> measured) {
    std::vector<std::string> warnings;
    bool any = false;
    std::map<Card, std::vector<Anchor>> anchors;
    for (const Measurement& row : measured) {
        if (is_part_of_latency(row.mode)) continue;
        any = true;
        try {
            AnchorRow anchor = anchor_row_of(row);
            anchors[card_in_run(row.gpu, row.run)].push_back({row, std::move(anchor)});
        } catch (const Error& error) {
            warnings.push_back(fmt::format("anchor line {}: {}", row.line, error.what()));
        }
    }
    if (!any) throw Error(ErrorCode::usage, "no anchor rows");
    anchors_ = std::move(anchors);
    predictors_.clear();  // built without anchors
    for (const auto& [card, rows] : anchors_) {
        for (const auto& [host, scalars] : conditioned(card.first, card.second, "")->hosts) {
            for (const std::string& warning : scalars.warnings)
                warnings.push_back(fmt::format("{} on {}: {}", host, card.first, warning));
        }
    }
    return warnings;
}

std::map<std::string, AnchorPlan> RowPredictor::suggest(std::span<const Measurement> measured) {
    struct OfCard {
        std::vector<AnchorRow> rows;
        DeviceFactors factors;
    };
    std::map<Card, OfCard> cards;
    for (const Measurement& row : measured) try {
            AnchorRow anchor = anchor_row_of(row);
            OfCard& card = cards[card_in_run(row.gpu, row.run)];
            if (card.rows.empty()) card.factors = bound(row).first.device().factors;
            card.rows.push_back(std::move(anchor));
        } catch (const Error&) {  // without a prediction, and reported as such
        }
    std::map<std::string, AnchorPlan> plans;
    for (const auto& [card, of] : cards)
        plans[card.second.empty() ? card.first : card.first + ", " + card.second] =
            suggest_anchors(of.rows, of.factors);
    return plans;
}

void anchor_on(Scenario& scenario, std::span<const Measurement> rows, const std::string& model, const RunArguments& run,
               const ShapeBindings& dims) {
    auto& [device, framework, options] = scenario;
    const std::string& slug = device.device.slug;
    std::vector<Measurement> own;
    for (const Measurement& measured : rows) {
        Measurement row = with_own_framework(measured);
        row.run.clear();
        if (is_same_model(run.models, row.model, model)) row.model = model;
        // Rows without a version are assumed to have the predicted one.
        if (row.version.empty() && row.framework == framework.framework)
            row.version = split_at(run.framework, '@').second;
        try {
            if (device_spec(row.gpu).slug == slug) own.push_back(std::move(row));
        } catch (const Error& error) {
            framework.warnings.push_back(fmt::format("anchor line {}: {}", measured.line, error.what()));
        }
    }
    if (own.empty()) {
        framework.warnings.push_back(fmt::format("no anchor row was measured on {}: predicted without anchors", slug));
        return;
    }
    RowPredictor predictor(run, dims);
    std::vector<std::string> warnings = predictor.anchor(own);
    const Conditioned* known = predictor.conditioned(slug, "", model);
    if (!known)
        throw_error(ErrorCode::usage, "no anchor row could be predicted{}",
                    warnings.empty() ? "" : "; " + warnings.front());
    device.factors = known->device;
    if (!known->hosts.contains(host_name(framework.framework, "")))
        warnings.push_back(fmt::format(
            "no anchor row was measured with {} on {}: the anchors calibrate the GPU{}", framework.framework, slug,
            known->cpus.empty() ? ", not its host" : " and the CPU, but not the framework's costs on it"));
    framework = anchored_as(framework, *known, framework.framework, "");
    for (std::string& warning : warnings) {  // the host's own warnings omit its name
        const bool reported =
            std::ranges::any_of(framework.warnings, [&](const std::string& one) { return warning.ends_with(one); });
        if (!reported) framework.warnings.push_back(std::move(warning));
    }
}

}  // namespace ftax::scenario
