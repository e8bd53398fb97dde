#include "src/scenario/language_rows.hpp"

#include <utility>

#include "ftax/import.hpp"
#include "ftax/version.hpp"
#include "src/scenario/scenario.hpp"

namespace ftax::scenario {

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
        ImportOptions options;
        options.tensor_parallel = static_cast<int>(row.cards);
        entry.graph = std::make_unique<Graph>(load_graph("zoo:" + row.model, options));
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
