#include "src/io/data_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "ftax/error.hpp"
#include "src/io/escape.hpp"
#include "src/io/file.hpp"

namespace ftax {
namespace {

/// The JSON files of a folder, sorted.
std::vector<std::filesystem::path> json_files(const std::string& folder) {
    std::vector<std::filesystem::path> paths;
    std::error_code failure;
    for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
        if (entry.path().extension() == ".json") paths.push_back(entry.path());
    }
    if (failure) throw Error(ErrorCode::usage, fmt::format("{}: {}", escape_terminal(folder), failure.message()));
    std::sort(paths.begin(), paths.end());
    return paths;
}

}  // namespace

DeviceProfileFile read_device_profiles(const std::string& folder) {
    const std::string path = folder + "/profiles/devices.json";
    return parse_device_profile(read_file(path), escape_terminal(path));
}

VarianceComponents read_variance_components(const std::string& folder) {
    const std::string path = folder + "/profiles/uncertainty.json";
    return parse_variance_components(read_file(path), escape_terminal(path));
}

std::vector<Stack> read_stacks(const std::string& folder) {
    std::vector<Stack> stacks;
    for (const std::string path : json_files(folder + "/stacks"))
        stacks.push_back(parse_stack(read_file(path), escape_terminal(path)));
    return stacks;
}

std::vector<FrameworkProfile> read_framework_profiles(const std::string& folder) {
    std::vector<FrameworkProfile> profiles;
    for (const std::string path : json_files(folder + "/profiles/frameworks")) {
        profiles.push_back(parse_framework_profile(read_file(path), escape_terminal(path)));
    }
    return profiles;
}

std::vector<std::string> call_host_names_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& path : json_files(folder + "/profiles/hosts")) names.push_back(path.stem().string());
    return names;
}

HostProfileFile read_call_host(const std::string& folder, const std::string& name) {
    const std::string path = fmt::format("{}/profiles/hosts/{}.json", folder, name);
    return parse_host_profile(read_file(path), escape_terminal(path));
}

}  // namespace ftax
