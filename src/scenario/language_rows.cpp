#include "src/scenario/language_rows.hpp"

#include <fmt/format.h>

#include "ftax/anchor.hpp"
#include "ftax/import.hpp"
#include "ftax/version.hpp"
#include "src/core/throw_error.hpp"
#include "src/scenario/scenario.hpp"
#include "src/scenario/usable_rows.hpp"

namespace ftax::scenario {

namespace {

/// Loads the decoder of a row, split for its number of cards.
Graph graph_of(const LanguageMeasurement& row, const std::string& models_folder) {
    ImportOptions options;
    options.tensor_parallel = static_cast<int>(row.cards);
    return load_graph(locate_model(models_folder, row.model), options);
}

}  // namespace

void anchor_on(FrameworkProfile& framework, DeviceProfile& device, std::span<const LanguageMeasurement> rows,
               const std::string& model, const std::string& models_folder) {
    std::map<std::pair<std::string, std::int64_t>, Graph> graphs;
    std::vector<AnchorRow> anchors;
    for (const LanguageMeasurement& row : rows) {
        if (row.clients > 0 || device_spec(row.gpu).slug != device.device.slug) continue;
        LibraryVersions libraries;
        const FrameworkChoice choice = take_version(row.framework, libraries);
        FrameworkProfile profile = framework;
        if (choice.name != framework.framework) {
            profile = versioned_profile(row.framework, {}, {}, libraries);
        } else if (!choice.version) {  // rows without a version are assumed to have the predicted one
            libraries.engine = version_number(framework.version).value_or(libraries.engine);
        }
        const auto [graph, added] = graphs.try_emplace({row.model, row.cards});
        if (added) graph->second = graph_of(row, models_folder);
        Generator generator(graph->second, device, profile, {.precision = row.precision, .libraries = libraries});
        AnchorRow& anchor = anchors.emplace_back(anchor_row(row, generator));
        anchor.host = choice.name;
        if (is_same_model(models_folder, row.model, model)) anchor.model = model;
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

LanguagePredictor::LanguagePredictor(std::string device_profile_path, Profile profile, std::string models_folder)
    : device_profile_path_(std::move(device_profile_path)),
      profile_(std::move(profile)),
      models_folder_(std::move(models_folder)) {
    if (!profile_) profile_ = [](const std::string& name) { return framework_profile(name); };
}

LanguagePredictor::Entry LanguagePredictor::build(const LanguageMeasurement& row,
                                                  std::span<const LanguageMeasurement> anchors) const {
    LibraryVersions libraries;
    const FrameworkChoice choice = take_version(row.framework, libraries);
    FrameworkProfile framework = profile_(choice.name);
    if (choice.version) framework = at_version(std::move(framework), *choice.version);
    DeviceProfile device = device_profile(row.gpu, device_profile_path_);
    if (!anchors.empty()) anchor_on(framework, device, anchors, row.model, models_folder_);
    Entry entry{std::make_unique<Graph>(graph_of(row, models_folder_)), {}};
    entry.generator = std::make_unique<Generator>(*entry.graph, std::move(device), std::move(framework),
                                                  PredictOptions{.precision = row.precision, .libraries = libraries});
    return entry;
}

Generation LanguagePredictor::predict(const LanguageMeasurement& row) {
    if (row.clients > 0) throw_error(ErrorCode::usage, "a run of a server; ftax serve takes it as an anchor");
    const GenerationRequest request{.batch = row.batch, .prompt = row.prompt, .new_tokens = row.new_tokens};
    std::vector<LanguageMeasurement> others = anchors_;
    std::erase_if(others, [&](const LanguageMeasurement& anchor) { return is_same_run(anchor, row); });
    if (others.size() < anchors_.size()) return build(row, others).generator->generate(request);
    Entry& entry = entries_[{row.gpu, row.framework, row.model, row.precision, row.cards}];
    if (!entry.generator) entry = build(row, anchors_);
    return entry.generator->generate(request);
}

std::set<report::UsedProfile> LanguagePredictor::profiles() const {
    std::set<report::UsedProfile> result;
    for (const auto& [key, entry] : entries_) {
        if (!entry.generator) continue;
        result.insert(report::used(entry.generator->predictor().device()));
        result.insert(report::used(entry.generator->predictor().framework()));
    }
    return result;
}

}  // namespace ftax::scenario
