#include "src/io/data_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "ftax/error.hpp"
#include "src/io/escape.hpp"
#include "src/io/file.hpp"

namespace ftax {

std::vector<std::filesystem::path> json_files(const std::string& folder) {
    std::vector<std::filesystem::path> paths;
    std::error_code failure;
    for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
        if (entry.path().extension() == ".json") paths.push_back(entry.path());
    }
    if (failure) throw Error(ErrorCode::usage, fmt::format("{}: {}", escape_terminal(folder), failure.message()));
    std::ranges::sort(paths);
    return paths;
}

DeviceProfileFile read_device_profiles(const std::string& folder) {
    const std::string path = folder + "/profiles/devices.json";
    return parse_device_profile(read_file(path), escape_terminal(path));
}

std::vector<FrameworkProfile> read_framework_profiles(const std::string& folder) {
    std::vector<FrameworkProfile> profiles;
    for (const std::string path : json_files(folder + "/profiles/frameworks")) {
        profiles.push_back(parse_framework_profile(read_file(path), escape_terminal(path)));
    }
    return profiles;
}

}  // namespace ftax
