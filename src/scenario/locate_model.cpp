#include "src/scenario/locate_model.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

namespace ftax::scenario {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view zoo_prefix = "zoo:";

/// Models of the zoo by the names that measured rows give them. Source: models_2x.csv.
std::string zoo_model(const std::string& model) {
    static const std::map<std::string, std::string> names{{"bert_base", "bert"},
                                                          {"bert_base_12x768", "bert"},
                                                          {"hf_resnet50", "resnet50"},
                                                          {"mlperf_resnet50", "resnet50"},
                                                          {"vit_base_patch16_224", "vit-base-patch16-224"},
                                                          {"vit_base_patch16_384", "vit-base-patch16-384"}};
    const auto found = names.find(model);
    return std::string(zoo_prefix) + (found == names.end() ? model : found->second);
}

bool is_model(const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) || fs::is_regular_file(path / "config.json", ignored);
}

/// NAME or NAME with a suffix in one folder; empty where there is none.
std::string in_folder(const fs::path& folder, const std::string& name) {
    for (const char* suffix : {"", ".pt2", ".onnx", ".pt", ".pth", ".txt", ".json"}) {
        fs::path path = folder / name;
        path += suffix;
        if (is_model(path)) return path.string();
    }
    return {};
}

/// Folders of `folder`, sorted.
std::vector<fs::path> owners(const fs::path& folder) {
    std::vector<fs::path> result;
    std::error_code failed;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
        if (entry.is_directory(failed)) result.push_back(entry.path());
    }
    std::sort(result.begin(), result.end());
    return result;
}

}  // namespace

std::string locate_model(const std::string& folder, const std::string& model) {
    if (model.starts_with(zoo_prefix) || is_model(model)) return model;
    if (folder.empty()) return zoo_model(model);
    if (std::string found = in_folder(folder, model); !found.empty()) return found;
    if (const std::size_t owner = model.find('/'); owner != std::string::npos) {
        if (std::string found = in_folder(folder, model.substr(owner + 1)); !found.empty()) return found;
        return zoo_model(model);
    }
    for (const fs::path& owner : owners(folder)) {
        if (std::string found = in_folder(owner, model); !found.empty()) return found;
    }
    return zoo_model(model);
}

bool is_same_model(const std::string& folder, const std::string& a, const std::string& b) {
    if (a == b) return true;
    const std::string at_a = locate_model(folder, a), at_b = locate_model(folder, b);
    if (at_a == at_b) return true;
    std::error_code ignored;
    return fs::equivalent(at_a, at_b, ignored);
}

}  // namespace ftax::scenario
