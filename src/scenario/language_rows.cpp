#include "src/scenario/language_rows.hpp"

#include <fmt/format.h>

#include "ftax/anchor.hpp"
#include "graphs/base/throw_error.hpp"
#include "src/scenario/generation.hpp"
#include "src/scenario/row_predictor.hpp"
#include "src/scenario/usable_rows.hpp"

namespace ftax::scenario {

namespace {

RunArguments run_of(const RunArguments& run, const LanguageMeasurement& row) {
    RunArguments own = run_of_row(run, row.gpu, row.framework, row.version);
    own.precision = name_of(row.precision);
    return own;
}

Graph graph_of(const RunArguments& run, const LanguageMeasurement& row) {
    return load_shard(with_cache_of({.model = locate_model(run.models, row.model)}, run_of(run, row)), row.cards);
}

}  // namespace

void anchor_on(Scenario& scenario, std::span<const LanguageMeasurement> rows, const std::string& model,
               const RunArguments& run) {
    auto& [device, framework, options] = scenario;
    std::map<std::pair<std::string, std::int64_t>, Graph> graphs;
    std::vector<AnchorRow> anchors;
    for (const LanguageMeasurement& row : rows) {
        if (row.clients > 0 || device_spec(row.gpu).slug != device.device.slug) continue;
        Scenario own = resolve(run_of(run, row), row.precision);
        if (own.framework.framework == framework.framework && row.version.empty()) {
            own.framework = framework;  // rows without a version are assumed to have the predicted one
            own.options.libraries = options.libraries;
        }
        const std::string host = own.framework.framework;
        const Graph& graph = kept_in(graphs, std::pair(row.model, row.cards), [&] { return graph_of(run, row); });
        Generator generator(graph, device, std::move(own.framework), own.options);
        AnchorRow& anchor = anchors.emplace_back(anchor_row(row, generator));
        anchor.host = host;
        if (is_same_model(run.models, row.model, model)) anchor.model = model;
    }
    if (anchors.empty()) {
        framework.warnings.push_back(fmt::format("no anchor row was measured on {}", device.device.slug));
        return;
    }
    const Conditioned known = condition(anchors, device.factors, model);
    device.factors = known.device;
    if (const auto host = known.hosts.find(framework.framework); host != known.hosts.end()) {
        framework = anchored(std::move(framework), host->second);
        return;
    }
    framework.warnings.push_back(
        fmt::format("no anchor row is from {} on {}: the anchors calibrate only the GPU and its CPU",
                    framework.framework, device.device.slug));
    if (!known.cpus.empty()) framework = anchored(std::move(framework), known.cpus.begin()->second);
}

LanguagePredictor::Entry LanguagePredictor::build(const LanguageMeasurement& row,
                                                  std::span<const LanguageMeasurement> anchors) const {
    Scenario scenario = resolve(run_of(run_, row), row.precision);
    if (!anchors.empty()) anchor_on(scenario, anchors, row.model, run_);
    Entry entry{std::make_unique<Graph>(graph_of(run_, row)), {}};
    entry.generator = std::make_unique<Generator>(*entry.graph, std::move(scenario.device),
                                                  std::move(scenario.framework), scenario.options);
    return entry;
}

Generation LanguagePredictor::predict(const LanguageMeasurement& row) {
    if (row.clients > 0) throw_error(ErrorCode::usage, "a run of a server; ftax serve takes it as an anchor");
    const GenerationRequest request{.batch = row.batch, .prompt = row.prompt, .new_tokens = row.new_tokens};
    std::vector<LanguageMeasurement> others = anchors_;
    std::erase_if(others, [&](const LanguageMeasurement& anchor) { return is_same_run(anchor, row); });
    if (others.size() < anchors_.size()) return build(row, others).generator->generate(request);
    Entry& entry = entries_[{row.gpu, row.framework, row.version, row.model, row.precision, row.cards}];
    if (!entry.generator) entry = build(row, anchors_);
    return entry.generator->generate(request);
}

std::set<report::UsedProfile> LanguagePredictor::profiles() const {
    std::set<report::UsedProfile> result;
    for (const auto& [key, entry] : entries_) {
        if (!entry.generator) continue;
        const Predictor& predictor = entry.generator->predictor();
        add_used(result, predictor.device(), predictor.framework());
    }
    return result;
}

}  // namespace ftax::scenario
