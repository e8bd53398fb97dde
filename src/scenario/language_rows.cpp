#include "src/scenario/language_rows.hpp"

#include <fmt/format.h>

#include <utility>

#include "ftax/anchor.hpp"
#include "ftax/import.hpp"
#include "ftax/version.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::scenario {

namespace {

/// The decoder of a row, cut for as many cards as it ran on.
Graph graph_of(const LanguageMeasurement& row) {
    ImportOptions options;
    options.tensor_parallel = static_cast<int>(row.cards);
    return load_graph("zoo:" + row.model, options);
}

}  // namespace

void anchor_on(FrameworkProfile& framework, DeviceProfile& device, std::span<const LanguageMeasurement> rows,
               std::string_view model) {
    std::map<std::pair<std::string, std::int64_t>, Graph> graphs;
    std::vector<AnchorRow> anchors;
    for (const LanguageMeasurement& row : rows) {
        LibraryVersions libraries;
        const std::string name = take_version(row.framework, libraries).name;
        if (name != framework.framework || device_spec(row.gpu).slug != device.device.slug) continue;
        const auto [graph, added] = graphs.try_emplace({row.model, row.cards});
        if (added) graph->second = graph_of(row);
        Generator generator(graph->second, device, framework, {.precision = row.precision, .libraries = libraries});
        anchors.push_back(anchor_row(row, generator));
    }
    if (anchors.empty()) {
        framework.warnings.push_back(
            fmt::format("no anchor row is of {} on {}", framework.framework, device.device.slug));
        return;
    }
    const Conditioned known = condition(anchors, device.factors, model);
    framework = anchored(std::move(framework), known.hosts.begin()->second);
    device.factors = known.device;
}

LanguagePredictor::LanguagePredictor(std::string device_profile_path, Profile profile)
    : device_profile_path_(std::move(device_profile_path)), profile_(std::move(profile)) {
    if (!profile_) profile_ = [](const std::string& name) { return framework_profile(name); };
}

Generation LanguagePredictor::predict(const LanguageMeasurement& row) {
    Entry& entry = entries_[{row.gpu, row.framework, row.model, row.precision, row.cards}];
    if (!entry.generator) {
        LibraryVersions libraries;
        const FrameworkChoice choice = take_version(row.framework, libraries);
        FrameworkProfile framework = profile_(choice.name);
        if (choice.version) framework = at_version(std::move(framework), *choice.version);
        DeviceProfile device = device_profile(row.gpu, device_profile_path_);
        if (!anchors_.empty()) anchor_on(framework, device, anchors_, row.model);
        entry.graph = std::make_unique<Graph>(graph_of(row));
        entry.generator =
            std::make_unique<Generator>(*entry.graph, std::move(device), std::move(framework),
                                        PredictOptions{.precision = row.precision, .libraries = libraries});
    }
    return entry.generator->generate({.batch = row.batch, .prompt = row.prompt, .new_tokens = row.new_tokens});
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
